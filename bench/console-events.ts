/** Connects clients of the live events to a gateway that is about to start, and reads all that they get. */
import { setTimeout as sleep } from "node:timers/promises";
import { readEndpointFile } from "#gateway/operations/endpoint-file.ts";

const [path = "", count = "0"] = process.argv.slice(2);
process.stdout.write('"ready"\n');

async function endpoint(): Promise<{ readonly url: string; readonly secret: string }> {
  for (;;) {
    const found = await readEndpointFile(path);
    if (found !== null) return found;
    await sleep(20);
  }
}

const { url, secret } = await endpoint();
await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    const answer = await fetch(`${url}/operations/live`, { headers: { authorization: `Bearer ${secret}` } });
    // The gateway ends the streams when it stops.
    for await (const part of answer.body ?? []) void part;
  }),
).catch(() => undefined);
