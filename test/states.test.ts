import { describe, expect, it } from "vitest";
import type { RunState } from "#gateway/model.ts";
import {
  ALL_RUN_STATES,
  AT_REST_STATES,
  ATTENTION_STATES,
  CANCELLABLE_STATES,
  IN_PROGRESS_STATES,
  LEAVES_LANE_STATES,
  OPEN_STATES,
  REPLAYABLE_STATES,
  RUN_STATES,
} from "#gateway/states.ts";

describe("the states of runs", () => {
  it("can all be reached from claimed", () => {
    const reached = new Set<RunState>(["claimed"]);
    for (const state of reached) for (const next of RUN_STATES[state].next) reached.add(next);
    expect([...reached].sort()).toEqual([...ALL_RUN_STATES].sort());
  });

  it("never lead from accepted back to a state that sends again", () => {
    const reached = new Set<RunState>(["accepted"]);
    for (const state of reached) for (const next of RUN_STATES[state].next) reached.add(next);
    expect([...reached].sort()).toEqual(["accepted", "confirmed", "discarded", "unconfirmed"]);
    for (const state of reached) expect(RUN_STATES[state].isAccepted).toBe(true);
  });

  it("can be quarantined and cancelled from every state in progress", () => {
    for (const state of IN_PROGRESS_STATES)
      expect(RUN_STATES[state].next).toEqual(expect.arrayContaining(["quarantined", "cancelled"]));
  });

  it("are in progress while they are open, and at rest when only their source is to be finished", () => {
    for (const state of OPEN_STATES) expect(IN_PROGRESS_STATES).toContain(state);
    expect(AT_REST_STATES).toEqual(ALL_RUN_STATES.filter((state) => RUN_STATES[state].stage === "finishing"));
  });

  it("have a stage that processes them unless a worker has them", () => {
    expect(ALL_RUN_STATES.filter((state) => RUN_STATES[state].stage === null)).toEqual(["mapping"]);
  });

  it("of a delivered run are accepted ones without known losses", () => {
    const delivered = ALL_RUN_STATES.filter((state) => RUN_STATES[state].isDelivered);
    const accepted = ALL_RUN_STATES.filter((state) => RUN_STATES[state].isAccepted);
    expect(delivered).toEqual(accepted.filter((state) => state !== "discarded"));
    for (const state of delivered) expect(RUN_STATES[state].end).toBe("delivered");
  });

  it("define the lists of operators and lanes", () => {
    expect(ATTENTION_STATES).toEqual(["unconfirmed", "emptied", "held", "discarded", "quarantined"]);
    expect(CANCELLABLE_STATES).toEqual([...OPEN_STATES, "emptied", "held", "quarantined"]);
    expect(LEAVES_LANE_STATES).toEqual(["opened", "accepted", "empty", "emptied", "held", "quarantined", "cancelled"]);
    for (const state of REPLAYABLE_STATES) expect(OPEN_STATES).not.toContain(state);
  });
});
