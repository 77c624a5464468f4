/** The virus scan, with a program that finds what contains EICAR and fails on what contains FAIL. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startTestHub, type TestHub, temporaryDirectory } from "../fixture.ts";

const SCANNER = `
  const { readFileSync, existsSync } = require("node:fs");
  const [path, mended] = process.argv.slice(1);
  const text = readFileSync(path === "-" ? 0 : path, "utf8");
  if (process.env.HOME !== undefined) process.exit(3);
  if (text.includes("EICAR")) { console.log((path === "-" ? "stream" : path) + ": Eicar FOUND"); process.exit(1); }
  if (text.includes("FAIL") && !existsSync(mended)) process.exit(2);
  if (text.includes("HANG")) setInterval(() => {}, 1000);
`;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let mended: string;
let hub: TestHub | null = null;
beforeAll(async () => {
  directory = await temporaryDirectory();
  mended = join(directory.path, "mended");
});
afterEach(async () => {
  await hub?.close();
  hub = null;
});
afterAll(() => directory.remove());

async function started(command: readonly string[], more: object = {}): Promise<TestHub> {
  const files = { path: join(directory.path, `files-${Math.random()}`), scan: { command, ...more } };
  hub = await startTestHub({ files });
  return hub;
}
const scanner = (how: string) => [process.execPath, "-e", SCANNER, how, mended];
const poll = (one: TestHub, id: number) => expect.poll(() => one.get(`/storage/${id}`));

describe.each(["-", "{file}"])("the content as %s", (how) => {
  test("a clean file waits for the triggers, an infected one is quarantined and not sent", async () => {
    const one = await started(scanner(how));
    const calls: string[] = [];
    one.inside().files?.onWaiting(1, () => calls.push("files"));
    const { body: clean } = await one.upload("clean");
    await poll(one, clean).toMatchObject({ state: "received", scan: "clean", reason: null });
    // Once when the file came, and once when it was clean.
    await expect.poll(() => calls).toHaveLength(2);
    const { body: infected } = await one.upload("EICAR", "letter.csv");
    const reason = expect.stringMatching(/^the virus scan found it infected: (stream|letter\.csv): Eicar FOUND$/);
    await poll(one, infected).toMatchObject({ state: "quarantined", scan: "infected", reason });
    for (const ids of [infected, [clean, infected]])
      expect(await one.call("GET", "/storage/file", { query: { ids } })).toMatchObject({ status: 409 });
    // Offered again, it is scanned again.
    expect(await one.call("POST", `/storage/${infected}/process`)).toMatchObject({ status: 200 });
    await poll(one, infected).toMatchObject({ state: "quarantined", scan: "infected" });
  });
});

test("a scan that does not work holds its file back, and no other; it is tried again", async () => {
  const one = await started(scanner("-"));
  const { body: failing } = await one.upload("FAIL");
  const { body: clean } = await one.upload("clean");
  await poll(one, clean).toMatchObject({ scan: "clean" });
  expect(await one.get(`/storage/${failing}`)).toMatchObject({
    state: "received",
    scan: "waiting",
    reason: "waits for the virus scan",
  });
  await writeFile(mended, "");
  await one.upload("another");
  await poll(one, failing).toMatchObject({ state: "received", scan: "clean" });
});

test("a scan that hangs is ended, by its time and with the hub", async () => {
  const one = await started(scanner("-"), { timeout: "500ms", concurrency: 1 });
  const { body: hanging } = await one.upload("HANG");
  const { body: clean } = await one.upload("clean");
  await poll(one, clean).toMatchObject({ scan: "clean" });
  expect(await one.get(`/storage/${hanging}`)).toMatchObject({ scan: "waiting" });
  await one.upload("HANG");
  await one.restart();
  expect(await one.get(`/storage/${hanging}`)).toMatchObject({ scan: "waiting" });
});

test("a program that does not exist finds no file clean", async () => {
  const one = await started([join(directory.path, "no-such-program")]);
  const { body: id } = await one.upload("clean");
  await one.restart();
  expect(await one.get(`/storage/${id}`)).toMatchObject({ state: "received", scan: "waiting" });
});
