import { expect, it } from "vitest";
import { Gate, GateClosed, type GatedCall } from "../../src/delivery/gate.ts";
import { systemClock } from "../../src/support/clock.ts";
import { never } from "./setup.ts";

/** Every call takes as long as is said. */
function openGate(takesMs: number, concurrency = 2) {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const gate = new Gate({ concurrency, breakerFailures: 5, initial: 10, max: 100 }, clock);
  const seen = { begun: 0, unsent: 0, underWay: [] as PromiseWithResolvers<string>[] };
  const call: GatedCall<void, string> = {
    begin: async () => {
      seen.begun += 1;
    },
    send() {
      const answer = Promise.withResolvers<string>();
      seen.underWay.push(answer);
      return answer.promise.finally(() => {
        nowMs += takesMs;
      });
    },
    unsent: async () => {
      seen.unsent += 1;
    },
  };
  const pass = (count: number, signal = never) =>
    Array.from({ length: count }, () => gate.pass(call, signal).catch((thrown: unknown) => thrown as Error));
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const answer = async (text = "taken") => {
    seen.underWay.shift()?.resolve(text);
    await turn();
  };
  return { gate, seen, pass, turn, answer };
}

it("before the first answer as many calls begin early as there are hands", async () => {
  const { seen, pass, turn } = openGate(1);
  pass(20);
  await turn();
  expect(seen.underWay).toHaveLength(2);
  expect(seen.begun).toBe(4);
});

it("the quicker the calls, the more begin before their turn, up to a limit", async () => {
  const quick = openGate(1);
  quick.pass(300);
  await quick.turn();
  await quick.answer();
  expect(quick.seen.underWay).toHaveLength(2);
  expect(quick.seen.begun).toBe(1 + 2 + 64);
  const slow = openGate(10);
  slow.pass(300);
  await slow.turn();
  await slow.answer();
  expect(slow.seen.begun).toBe(1 + 2 + 10);
});

it("after a failure few begin early again, and all come to their turn", async () => {
  const { seen, pass, turn, answer } = openGate(1);
  const results = pass(10);
  await turn();
  seen.underWay.shift()?.reject(new Error("lost"));
  await turn();
  expect(seen.begun).toBe(1 + 2 + 2);
  while (seen.underWay.length > 0) await answer();
  expect((await Promise.all(results)).filter((result) => result === "taken")).toHaveLength(9);
});

it("what has begun and waits is told when the gate is retired, and what waits farther off never begins", async () => {
  const { gate, seen, pass, turn, answer } = openGate(1);
  const results = pass(10);
  await turn();
  gate.retire();
  while (seen.underWay.length > 0) await answer();
  const ends = await Promise.all(results);
  expect(ends.filter((end) => end === "taken")).toHaveLength(2);
  expect(ends.filter((end) => end instanceof GateClosed)).toHaveLength(8);
  expect(seen).toMatchObject({ begun: 4, unsent: 2 });
});

it("one that is stopped while it waits gives its place to others", async () => {
  const { seen, pass, turn, answer } = openGate(1);
  const stop = new AbortController();
  pass(2);
  const stopped = pass(3, stop.signal);
  const last = pass(1);
  await turn();
  stop.abort(new Error("stopped"));
  while (seen.underWay.length > 0) await answer();
  expect(await Promise.all(last)).toEqual(["taken"]);
  for (const end of await Promise.all(stopped)) expect(end).toBeInstanceOf(Error);
  expect(seen.unsent).toBe(2);
});
