/**
 * The indexes in which runs are found by their state. On its way a run is in those of its stage alone, so that each state that it passes
 * costs little; the long ones take it when it comes to rest. All are partial: the database uses one only when the query has its condition
 * as the migration has it, with the states by their names.
 */
import type { RunState } from "../../model.ts";
import type { RunFilter } from "../ledger.ts";
import { brokenInvariant, RUN_TRANSITIONS, UNMAPPED_RUN_STATES } from "../states.ts";

export interface Shelf {
  readonly index: string;
  /** What it has the runs of a state by, in the order of their ids; null where the order goes through the whole state. */
  readonly by: "drop_name" | "lane" | null;
}

/** The condition of `runs_intake` and of `runs_unmapped`. */
export const UNMAPPED = anyOf(UNMAPPED_RUN_STATES);
/** Of `runs_delivery`, and a part of it. */
export const TO_DELIVER = anyOf(["mapped", "delivering", "held"]);
export const DELIVERING = anyOf(["mapped", "delivering"]);
const RESTING_STATES = [
  "opened",
  "accepted",
  "confirmed",
  "unconfirmed",
  "empty",
  "discarded",
  "quarantined",
  "cancelled",
] as const;
/** Of `runs_resting` and of `runs_changed`. */
export const RESTING = anyOf(RESTING_STATES);

export function shelfOf(state: RunState, { unfinished, unsettled }: RunFilter): Shelf {
  if (state === "claimed" || state === "fetched" || state === "mapping")
    return { index: "runs_intake", by: "drop_name" };
  if (state === "mapped" || state === "delivering" || state === "held")
    return { index: "runs_delivery", by: "lane" };
  if (unsettled === true && (state === "accepted" || state === "opened" || state === "unconfirmed"))
    return { index: "runs_unsettled", by: "lane" };
  if (unfinished === true && state !== "accepted" && state !== "unconfirmed")
    return { index: "runs_unfinished", by: "drop_name" };
  return { index: "runs_resting", by: null };
}

/** A state as a text of SQL. Never anything but a state. */
export function literal(state: RunState): string {
  if (!Object.hasOwn(RUN_TRANSITIONS, state))
    throw brokenInvariant("list runs", state, `"${state}" is no state of a run`);
  return `'${state}'`;
}

function anyOf(states: readonly RunState[]): string {
  return `(${states.map((state) => `runs.state = ${literal(state)}`).join(" OR ")})`;
}
