import { expect, it } from "vitest";
import { InvariantError } from "#core/errors.ts";
import { assertTransition, FAULT_POINTS } from "#gateway/ledger/transitions.ts";
import { ALL_BATCH_STATES, ALL_RUN_STATES, ARRIVAL_STATES } from "#gateway/states.ts";

it("a run returns to a state in which the work can be repeated after a crash", () => {
  expect(() => assertTransition("run", "r", "mapping", "fetched")).not.toThrow();
  expect(() => assertTransition("run", "r", "fetched", "claimed")).not.toThrow();
});

it("a transition that is not in the table is refused with its states", () => {
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
  const states = { arrival: Object.keys(ARRIVAL_STATES), run: ALL_RUN_STATES, batch: ALL_BATCH_STATES };
  for (const [kind, names] of Object.entries(states))
    for (const state of names)
      expect(FAULT_POINTS).toEqual(
        expect.arrayContaining([`ledger.${kind}.${state}.before`, `ledger.${kind}.${state}.after`]),
      );
  expect(new Set(FAULT_POINTS).size).toBe(FAULT_POINTS.length);
});
