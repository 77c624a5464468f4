import { expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { Gate, GateClosed, type GatedCall } from "#gateway/delivery/gate.ts";
import { never } from "./setup.ts";

/** Every call takes the given time. */
function openGate(takesMs: number, concurrency = 2) {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const gate = new Gate({ concurrency, breakerFailures: 5, initial: 10, max: 100 }, clock);
  const seen = { prepared: 0, cancelled: 0, running: [] as PromiseWithResolvers<string>[] };
  const call: GatedCall<void, string> = {
    prepare: async () => {
      seen.prepared += 1;
    },
    send() {
      const answer = Promise.withResolvers<string>();
      seen.running.push(answer);
      return answer.promise.finally(() => {
        nowMs += takesMs;
      });
    },
    cancel: async () => {
      seen.cancelled += 1;
    },
  };
  const pass = (count: number, signal = never) =>
    Array.from({ length: count }, () => gate.pass(call, signal).catch((thrown: unknown) => thrown as Error));
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const answer = async (text = "taken") => {
    seen.running.shift()?.resolve(text);
    await turn();
  };
  return { gate, seen, pass, turn, answer };
}

it("before the first response as many calls are prepared as there are slots", async () => {
  const { seen, pass, turn } = openGate(1);
  pass(20);
  await turn();
  expect(seen.running).toHaveLength(2);
  expect(seen.prepared).toBe(4);
});

it("the faster the calls, the more are prepared before their turn, up to a limit", async () => {
  const quick = openGate(1);
  quick.pass(300);
  await quick.turn();
  await quick.answer();
  expect(quick.seen.running).toHaveLength(2);
  expect(quick.seen.prepared).toBe(1 + 2 + 64);
  const slow = openGate(10);
  slow.pass(300);
  await slow.turn();
  await slow.answer();
  expect(slow.seen.prepared).toBe(1 + 2 + 10);
});

it("after a failure few are prepared early again, and all get their turn", async () => {
  const { seen, pass, turn, answer } = openGate(1);
  const results = pass(10);
  await turn();
  seen.running.shift()?.reject(new Error("lost"));
  await turn();
  expect(seen.prepared).toBe(1 + 2 + 2);
  while (seen.running.length > 0) await answer();
  expect((await Promise.all(results)).filter((result) => result === "taken")).toHaveLength(9);
});

it("retiring the gate cancels the prepared calls, and the waiting ones are never prepared", async () => {
  const { gate, seen, pass, turn, answer } = openGate(1);
  const results = pass(10);
  await turn();
  gate.retire();
  while (seen.running.length > 0) await answer();
  const ends = await Promise.all(results);
  expect(ends.filter((end) => end === "taken")).toHaveLength(2);
  expect(ends.filter((end) => end instanceof GateClosed)).toHaveLength(8);
  expect(seen).toMatchObject({ prepared: 4, cancelled: 2 });
});

it("a call that is aborted while it waits releases its slot", async () => {
  const { seen, pass, turn, answer } = openGate(1);
  const stop = new AbortController();
  pass(2);
  const stopped = pass(3, stop.signal);
  const last = pass(1);
  await turn();
  stop.abort(new Error("stopped"));
  while (seen.running.length > 0) await answer();
  expect(await Promise.all(last)).toEqual(["taken"]);
  for (const end of await Promise.all(stopped)) expect(end).toBeInstanceOf(Error);
  expect(seen.cancelled).toBe(2);
});
