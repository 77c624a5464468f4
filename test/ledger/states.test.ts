import { describe, expect, it } from "vitest";
import {
  ARRIVAL_TRANSITIONS,
  assertTransition,
  BATCH_TRANSITIONS,
  FAULT_POINTS,
  OPEN_RUN_STATES,
  RUN_TRANSITIONS,
} from "../../src/ledger/states.ts";
import type { RunState } from "../../src/model.ts";
import { InvariantError } from "../../src/support/errors.ts";

const RUN_STATES = Object.keys(RUN_TRANSITIONS) as RunState[];

describe("the states of runs", () => {
  it("can all be reached from claimed", () => {
    const reached = new Set<RunState>(["claimed"]);
    for (const state of reached) for (const next of RUN_TRANSITIONS[state]) reached.add(next);
    expect([...reached].sort()).toEqual([...RUN_STATES].sort());
  });

  it("never lead from accepted back to where something is sent again", () => {
    const reached = new Set<RunState>(["accepted"]);
    for (const state of reached) for (const next of RUN_TRANSITIONS[state]) reached.add(next);
    expect([...reached].sort()).toEqual(["accepted", "confirmed", "discarded", "unconfirmed"]);
  });

  it("can be quarantined and cancelled from wherever a run is on its way", () => {
    for (const state of OPEN_RUN_STATES)
      expect(RUN_TRANSITIONS[state]).toEqual(expect.arrayContaining(["quarantined", "cancelled"]));
  });

  it("lead back to a state in which the work can be done again after a crash", () => {
    expect(() => assertTransition("run", "r", "mapping", "fetched")).not.toThrow();
    expect(() => assertTransition("run", "r", "fetched", "claimed")).not.toThrow();
  });
});

it("a transition that is not in the table is refused with what was asked for", () => {
  expect(() => assertTransition("run", "r1", "claimed", "accepted")).toThrow(
    new InvariantError("HG-BUG-001", {
      operation: "advance run",
      subject: "r1",
      message: "run r1 may not go from claimed to accepted",
    }),
  );
  expect(() => assertTransition("batch", "o", "accepted", "sending")).toThrow(InvariantError);
  expect(() => assertTransition("arrival", 1, "matched", "unmatched")).toThrow(InvariantError);
});

it("every state has a fault point on both sides of its commit", () => {
  const states = { arrival: ARRIVAL_TRANSITIONS, run: RUN_TRANSITIONS, batch: BATCH_TRANSITIONS };
  for (const [kind, table] of Object.entries(states))
    for (const state of Object.keys(table))
      expect(FAULT_POINTS).toEqual(
        expect.arrayContaining([`ledger.${kind}.${state}.before`, `ledger.${kind}.${state}.after`]),
      );
  expect(new Set(FAULT_POINTS).size).toBe(FAULT_POINTS.length);
});
