/** The receiver of `docs/events.md`, as the page has it, beside a hub that sends to it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startTestHub, type TestHub, temporaryDirectory } from "../fixture.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/events.md"), "utf8");
const PORT = ".listen(8080);";
const SECRET = "a-secret-of-this-test";

let hub: TestHub;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let child: ChildProcess | null = null;
beforeEach(async () => {
  hub = await startTestHub({ webhook: { backoff: "20ms", hosts: ["127.0.0.1"] } });
  directory = await temporaryDirectory();
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await hub.close();
  await directory.remove();
});

/** Starts it on any port, which it prints first. */
async function startExample(): Promise<{ url: string; lines: Interface }> {
  const [, code = ""] = /### A receiver\n\n```js\n(.*?)```/s.exec(page) ?? [];
  expect(code).toContain(PORT);
  const path = join(directory.path, "receiver.mjs");
  const listen = '.listen(0, "127.0.0.1", function () { console.log(this.address().port); });';
  await writeFile(path, code.replace(PORT, listen));
  child = spawn(process.execPath, [path], {
    env: { HEADGATE_SECRET: SECRET },
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new Error("no output");
  const lines = createInterface({ input: child.stdout });
  const [port] = await once(lines, "line");
  return { url: `http://127.0.0.1:${port}/`, lines };
}

test("takes each event once, and refuses what is not signed by its key", async () => {
  const { url, lines } = await startExample();
  const printed: string[] = [];
  lines.on("line", (line) => printed.push(line));
  const body = { name: "Example", types: ["structure.changed"], url, secret: SECRET, batch: 10 };
  const { id } = await hub.post("/events/subscriptions", body);
  expect(await hub.post(`/events/subscriptions/${id}/test`, undefined)).toMatchObject({ accepted: true, status: 204 });
  for (const name of ["A", "B", "C"]) await hub.post("/groups", { name });
  await expect.poll(() => hub.get(`/events/subscriptions/${id}`)).toMatchObject({ behind: 0, state: "Active" });
  const names = printed.filter((line) => line.startsWith("structure.changed"));
  expect(names).toEqual(["A", "B", "C"].map((name) => `structure.changed ${name} created`));
  expect(printed.filter((line) => line.startsWith("subscription.test"))).toHaveLength(1);
  const forged = await fetch(url, {
    method: "POST",
    headers: { "x-headgate-signature": `t=${Math.floor(Date.now() / 1_000)},v1=${"0".repeat(64)}` },
    body: JSON.stringify({ events: [] }),
  });
  expect(forged.status).toBe(401);
});
