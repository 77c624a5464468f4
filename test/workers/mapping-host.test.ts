import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { digestMapper } from "../../src/mapping/mapper-files.ts";
import { MappingHost } from "../../src/workers/mapping-host.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { writeMapper } from "./pool-rig.ts";

const MEMORY = 100_000_000;

it("a cancelled task ends soon, also when the report of its begin arrives later and its thread hangs", async () => {
  const folder = await temporaryFolder();
  const pipe = join(folder, "pipe");
  const note = join(folder, "note");
  execFileSync("mkfifo", [pipe]);
  await writeMapper(
    folder,
    "hangs",
    "",
    `import { openSync, writeFileSync } from "node:fs";
    writeFileSync(${JSON.stringify(note)}, "");
    openSync(${JSON.stringify(pipe)}, "r");`,
  );
  const modulePath = join(folder, "hangs.ts");
  const request = { kind: "describe", modulePath, digest: await digestMapper(modulePath) } as const;
  const host = new MappingHost({ memory: MEMORY, threads: 1, writable: [folder] }, () => undefined);
  const stop = new AbortController();
  const asked = host.ask(request, { signal: stop.signal, timeLimit: 2_000 });
  // Without a turn of the event loop, which would receive the report.
  while (!existsSync(note)) wait(10);
  wait(200);
  stop.abort();
  expect(await asked).toMatchObject({ outcome: { end: "cancelled" } });
  await host.kill();
});

function wait(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
