import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DiskThread, type DiskThreadFacts } from "#core/threads/disk-thread.ts";
import type { Answer, Order } from "./disk-thread-worker.ts";

let folder: string;
let pipe: string;
let faults: string[];
let reader: number | null = null;
let thread: DiskThread<Order, Answer>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  faults = [];
  thread = start({});
});
afterEach(async () => {
  release();
  await thread.close();
  closeSync(reader ?? -1);
  reader = null;
  rmSync(folder, { recursive: true });
});

const MODULE = new URL("./disk-thread-worker.ts", import.meta.url);

const start = (facts: Partial<DiskThreadFacts>) =>
  new DiskThread<Order, Answer>({
    module: MODULE,
    data: { greeting: "hello" },
    onFault: (words) => faults.push(words),
    ...facts,
  });
const tell = (words: string, signal?: AbortSignal) => thread.ask({ do: "tell", words }, signal);
/** Of one that hangs, or is about to. */
async function hang(signal?: AbortSignal) {
  const begun = join(folder, "begun");
  const answer = thread.ask({ do: "hang", begun, pipe, after: join(folder, "after") }, signal);
  await expect.poll(() => existsSync(begun)).toBe(true);
  return { answer };
}
/** Lets it go on. */
function release(): void {
  reader ??= openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
}

test("returns the result of one task after another", async () => {
  const answers = await Promise.all(["one", "two", "three"].map((words) => tell(words)));
  expect(answers.map((answer) => answer?.words)).toEqual(["hello one", "hello two", "hello three"]);
  expect(new Set(answers.map((answer) => answer?.thread)).size).toBe(1);
});

test("performs tasks in the order in which they were asked", async () => {
  const asked = Array.from({ length: 12 }, (_, nth) => nth);
  const answers = await Promise.all(asked.map((nth) => tell(String(nth))));
  expect(answers.map((answer) => answer?.nth)).toEqual(asked);
  const next = await Promise.all(asked.map((nth) => tell(String(nth))));
  expect(next.map((answer) => answer?.nth)).toEqual(asked.map((nth) => nth + asked.length));
});

test("returns null for a failed task, and continues with the same thread", async () => {
  const before = await tell("before");
  expect(await thread.ask({ do: "fail" })).toBeNull();
  expect((await tell("after"))?.thread).toBe(before?.thread);
});

test("a thread that dies returns null for all running tasks, and the next task starts another", async () => {
  expect(await Promise.all([thread.ask({ do: "die" }), tell("behind it")])).toEqual([null, null]);
  expect((await tell("after"))?.words).toBe("hello after");
});

test("a cancelled caller returns at once while the thread hangs, and the thread does nothing more for it", async () => {
  const given = new AbortController();
  const hung = await hang(given.signal);
  const behind = tell("behind it");
  given.abort();
  expect(await hung.answer).toBeNull();
  release();
  expect((await behind)?.words).toBe("hello behind it");
  expect(existsSync(join(folder, "after"))).toBe(false);
  expect(await tell("x", given.signal), "given up before").toBeNull();
});

test("a thread that hangs in a cancelled task is replaced, and does no more when it resumes", async () => {
  thread = start({ hangMs: 1 });
  const first = await tell("first");
  const given = new AbortController();
  const hung = await hang(given.signal);
  const behind = tell("behind it");
  given.abort();
  expect([await hung.answer, await behind]).toEqual([null, null]);
  expect((await tell("after"))?.thread).not.toBe(first?.thread);
  expect(faults).toEqual([expect.stringContaining("does not respond")]);
  release();
  await thread.close();
  expect(existsSync(join(folder, "after"))).toBe(false);
});

test("a thread is never replaced in the middle of an awaited task", async () => {
  thread = start({ hangMs: 100 });
  const waited = await hang();
  const given = new AbortController();
  const behind = tell("behind it", given.signal);
  given.abort();
  expect(await behind).toBeNull();
  const later = tell("later");
  // Longer than its patience: so its look at the thread comes first.
  await new Promise((resolve) => setTimeout(resolve, 150));
  release();
  const answer = await waited.answer;
  expect(answer?.words).toBe("heard");
  expect((await later)?.thread).toBe(answer?.thread);
});

test("ends after a while without tasks, and starts again", async () => {
  thread = start({ idleMs: 1 });
  const threads = new Set<number | undefined>();
  await expect
    .poll(async () => {
      threads.add((await tell("again"))?.thread);
      return threads.size;
    })
    .toBeGreaterThan(1);
});

test("returns null when it is closed, and a hanging thread does not keep it from closing", async () => {
  thread = start({ hangMs: 50 });
  const given = new AbortController();
  const hung = await hang(given.signal);
  await Promise.all([thread.close(), hung.answer.then((answer) => expect(answer).toBeNull())]);
  expect(await tell("after")).toBeNull();
  release();
});

test("keeps no process alive, except for an awaited result", async () => {
  const { href } = new URL("../../src/core/threads/disk-thread.ts", import.meta.url);
  const program = `
    import { DiskThread } from ${JSON.stringify(href)};
    const thread = new DiskThread({ module: new URL(${JSON.stringify(MODULE.href)}), data: { greeting: "hello" } });
    console.log((await thread.ask({ do: "tell", words: "and bye" })).words);`;
  const argv = ["--input-type=module", "--eval", program];
  expect(execFileSync(process.execPath, argv, { encoding: "utf8", cwd: folder })).toBe("hello and bye\n");
});
