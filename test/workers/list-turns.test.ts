/** Lists wait for the process that works for others of their mapper, for a while. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FairQueue } from "#core/turns.ts";
import { ListTurns, type Load } from "#mapping/workers/list-turns.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new AbortController().signal;
const busy = { threads: 1, tasks: 1 };

interface Asked {
  readonly drop?: string;
  readonly key?: string;
  readonly load?: Load;
  readonly signal?: AbortSignal;
}

/** Lists that end when they are told, and what came of each. */
function lists(workers = new FairQueue<string>(8)) {
  const turns = new ListTurns(workers);
  const told: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    told,
    async ask(name: string, { drop = "drop", key = "mapper", load = busy, signal = never }: Asked = {}): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.set(name, resolve);
      const work = () => {
        told.push(name);
        return promise;
      };
      await turns.run({ key, drop, load }, work, signal).catch(() => told.push(`not ${name}`));
    },
    async end(name: string): Promise<void> {
      ends.get(name)?.();
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

test("lists get their turns one after another, in the order of arrival", async () => {
  const { told, ask, end } = lists();
  const all = ["first", "second", "third"].map((name) => ask(name));
  expect(told).toEqual(["first"]);
  await end("first");
  expect(told).toEqual(["first", "second"]);
  await end("second");
  await end("third");
  await Promise.all(all);
  void ask("fourth");
  expect(told).toEqual(["first", "second", "third", "fourth"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("the lists of drops take turns, whatever the backlog of one of them", async () => {
  const { told, ask, end } = lists();
  for (const [name, drop] of [..."12345"].map((nth) => [`a${nth}`, "a"] as const)) void ask(name, { drop });
  void ask("d1", { drop: "d" });
  void ask("d2", { drop: "d" });
  void ask("b1", { drop: "b" });
  for (const name of ["a1", "a2", "d1", "b1", "a3", "d2", "a4"]) await end(name);
  expect(told).toEqual(["a1", "a2", "d1", "b1", "a3", "d2", "a4", "a5"]);
});

test("a list begins beside a running one after a wait, and at once with an idle thread", async () => {
  const { told, ask } = lists();
  void ask("first");
  void ask("of another mapper", { key: "another" });
  void ask("with a thread", { load: { threads: 2, tasks: 1 } });
  void ask("patient");
  await vi.advanceTimersByTimeAsync(100);
  expect(told).toEqual(["first", "of another mapper", "with a thread"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual(["first", "of another mapper", "with a thread", "patient"]);
});

test("a list begins at once beside one that the process has been at for that wait", async () => {
  const { told, ask } = lists();
  void ask("slow");
  await vi.advanceTimersByTimeAsync(10_000);
  void ask("next");
  expect(told).toEqual(["slow", "next"]);
});

test("of two lists that come at once, one takes the idle thread and the other waits", async () => {
  const { told, ask } = lists();
  for (const name of ["first", "second"]) void ask(name, { load: { threads: 1, tasks: 0 } });
  expect(told).toEqual(["first"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual(["first", "second"]);
});

test("a list that is cancelled while it waits does not begin, and delays no other", async () => {
  const { told, ask, end } = lists();
  void ask("first");
  const stop = new AbortController();
  const cancelled = ask("cancelled", { signal: stop.signal });
  const last = ask("last");
  stop.abort();
  await cancelled;
  await end("first");
  await end("last");
  await last;
  expect(told).toEqual(["first", "not cancelled", "last"]);
  await ask("late", { signal: stop.signal });
  expect(told.at(-1)).toBe("not late");
});

test("a turn takes a worker, and returns it", async () => {
  const workers = new FairQueue<string>(1);
  const { told, ask, end } = lists(workers);
  const first = ask("first");
  expect(workers.isIdle).toBe(false);
  const stop = new AbortController();
  const another = ask("another", { key: "another", signal: stop.signal });
  stop.abort();
  await another;
  expect(told).toEqual(["first", "not another"]);
  await end("first");
  await first;
  expect(workers.isIdle).toBe(true);
});
