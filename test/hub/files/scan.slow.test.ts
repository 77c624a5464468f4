/** The virus scan, with a program that finds what contains EICAR and fails on what contains FAIL. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
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

async function started(command: readonly string[], more: object = {}, lines: string[] = []): Promise<TestHub> {
  const files = { path: join(directory.path, `files-${Math.random()}`), scan: { command, ...more } };
  hub = await startTestHub({ files }, true, {
    log: createLog("warn", { write: (line) => void lines.push(line) }),
  });
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
  const lines: string[] = [];
  const one = await started(scanner("-"), {}, lines);
  const { body: failing } = await one.upload("FAIL");
  const { body: clean } = await one.upload("clean");
  await poll(one, clean).toMatchObject({ scan: "clean" });
  expect(await one.get(`/storage/${failing}`)).toMatchObject({
    state: "received",
    scan: "waiting",
    reason: "waits for the virus scan",
  });
  const content = { query: { ids: failing } };
  const detail = expect.stringContaining(`the file ${failing} waits for the virus scan`);
  for (const asked of [content, { query: { ids: [clean, failing] } }, { ...content, headers: { range: "bytes=0-1" } }])
    expect(await one.call("GET", "/storage/file", asked)).toMatchObject({ status: 409, body: { detail } });
  expect(await one.call("HEAD", "/storage/file", content)).toMatchObject({ status: 409 });
  expect(await one.call("POST", `/storage/${failing}/dryRun`)).toMatchObject({ status: 409, body: { detail } });
  // A scan that is running is not begun again.
  await expect.poll(() => lines.join("")).toContain("the virus scan of a file did not work");
  await writeFile(mended, "");
  await one.upload("another");
  await poll(one, failing).toMatchObject({ state: "received", scan: "clean" });
  expect(await one.call("GET", "/storage/file", content)).toMatchObject({ status: 200 });
});

test("a scan that hangs holds no other file back", async () => {
  const one = await started(scanner("-"), { timeout: "1h", concurrency: 2 });
  const { body: hanging } = await one.upload("HANG");
  for (const name of ["a.csv", "b.csv", "c.csv"]) {
    const { body: clean } = await one.upload(`clean ${name}`, name);
    await poll(one, clean).toMatchObject({ scan: "clean" });
  }
  expect(await one.get(`/storage/${hanging}`)).toMatchObject({ scan: "waiting" });
});

test("scans of one account that hang hold no file of another account back, and turns are taken", async () => {
  const one = await started(scanner("-"), { timeout: "1h", concurrency: 3 });
  for (let nth = 0; nth < 5; nth += 1) await one.upload("HANG", `${nth}.csv`);
  for (const name of ["a.csv", "b.csv"]) {
    const { body: other } = await one.upload("clean", name, { as: "second", account: 2 });
    await expect
      .poll(() => one.get(`/storage/${other}`, {}, { as: "second", account: 2 }))
      .toMatchObject({
        scan: "clean",
      });
  }
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

test("a scan that hangs is ended with the programs that it started", async () => {
  const pid = join(directory.path, "pid");
  const script = `sleep 600 & echo $! > ${pid}; wait`;
  const one = await started(["sh", "-c", script], { timeout: "1s", concurrency: 1 });
  // More than a pipe holds, so that it is not all sent.
  const { body: first } = await one.upload("x".repeat(1_000_000));
  await expect.poll(() => readFile(pid, "utf8").catch(() => "")).toMatch(/\d/);
  const begun = await readFile(pid, "utf8");
  await expect.poll(() => isRunning(begun), { timeout: 5_000 }).toBe(false);
  // The next is scanned as well.
  await one.upload("y");
  await expect.poll(() => readFile(pid, "utf8"), { timeout: 5_000 }).not.toBe(begun);
  expect(await one.get(`/storage/${first}`)).toMatchObject({ scan: "waiting" });
});

function isRunning(pid: string): boolean {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

test("a file whose bytes are missing is named in the log, and waits", async () => {
  const path = join(directory.path, "files-lost");
  const lines: string[] = [];
  const files = { path, scan: { command: scanner("-") } };
  const one = await startTestHub({ files }, true, {
    log: createLog("warn", { write: (line) => void lines.push(line) }),
  });
  hub = one;
  const { body: id } = await one.upload("clean");
  await poll(one, id).toMatchObject({ scan: "clean" });
  await one.inside().store.files.advance(1, [{ id, state: "quarantined", reason: null, atMs: 1 }]);
  const { sha256 } = await one.get(`/storage/${id}`);
  await rm(join(path, sha256.slice(0, 2), sha256));
  await one.ok("POST", `/storage/${id}/process`);
  await expect.poll(() => lines.join("")).toContain(`the bytes with the SHA-256 ${sha256} are missing`);
  expect(await one.get(`/storage/${id}`)).toMatchObject({ state: "received", scan: "waiting" });
});

test("a program that does not exist finds no file clean", async () => {
  const one = await started([join(directory.path, "no-such-program")]);
  const { body: id } = await one.upload("clean");
  await one.restart();
  expect(await one.get(`/storage/${id}`)).toMatchObject({ state: "received", scan: "waiting" });
});
