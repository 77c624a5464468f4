/** Lists wait for the process that works for others of their mapper, for a while. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ListTurns } from "../../src/workers/list-turns.ts";
import { Slots } from "../../src/workers/slots.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new AbortController().signal;
const busy = { threads: 1, tasks: 1 };

/** Notes in `told` what came of it. */
async function noteTurn(turns: ListTurns, name: string, told: string[], signal = never, load = busy): Promise<void> {
  told.push(`${name} ${(await turns.take("mapper", load, signal)) ? "begins" : "does not"}`);
}

test("lists get their turns one after another, in the order of arrival", async () => {
  const turns = new ListTurns(new Slots(8));
  const told: string[] = [];
  const all = ["first", "second", "third"].map((name) => noteTurn(turns, name, told));
  await all[0];
  expect(told).toEqual(["first begins"]);
  turns.free("mapper");
  await all[1];
  expect(told).toEqual(["first begins", "second begins"]);
  turns.free("mapper");
  await all[2];
  turns.free("mapper");
  expect(await turns.take("mapper", busy, never)).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test("a list begins beside a running one after a wait, and at once with an idle thread", async () => {
  const turns = new ListTurns(new Slots(8));
  const told: string[] = [];
  expect(await turns.take("mapper", busy, never)).toBe(true);
  expect(await turns.take("another", busy, never)).toBe(true);
  expect(await turns.take("mapper", { threads: 2, tasks: 1 }, never)).toBe(true);
  const waiting = noteTurn(turns, "patient", told);
  await vi.advanceTimersByTimeAsync(100);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_000);
  await waiting;
  expect(told).toEqual(["patient begins"]);
});

test("of two lists that come at once, one takes the idle thread and the other waits", async () => {
  const turns = new ListTurns(new Slots(8));
  const told: string[] = [];
  const idle = { threads: 1, tasks: 0 };
  const [first] = ["first", "second"].map((name) => noteTurn(turns, name, told, never, idle));
  await first;
  expect(told).toEqual(["first begins"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual(["first begins", "second begins"]);
});

test("a list that is cancelled while it waits does not begin, and delays no other", async () => {
  const turns = new ListTurns(new Slots(8));
  const told: string[] = [];
  await turns.take("mapper", busy, never);
  const stop = new AbortController();
  const cancelled = noteTurn(turns, "cancelled", told, stop.signal);
  const last = noteTurn(turns, "last", told);
  stop.abort();
  await cancelled;
  turns.free("mapper");
  await last;
  expect(told).toEqual(["cancelled does not", "last begins"]);
  expect(await turns.take("mapper", busy, stop.signal)).toBe(false);
});

test("a turn takes a slot, and returns it", async () => {
  const slots = new Slots(1);
  const turns = new ListTurns(slots);
  expect(await turns.take("mapper", busy, never)).toBe(true);
  expect(slots.areAllFree).toBe(false);
  const stop = new AbortController();
  const another = turns.take("another", busy, stop.signal);
  stop.abort();
  expect(await another).toBe(false);
  turns.free("mapper");
  expect(slots.areAllFree).toBe(true);
  expect(await turns.take("another", busy, never)).toBe(true);
});
