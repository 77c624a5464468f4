/**
 * The indexes that find runs by their state. A run in progress is only in those of its stage, so that each
 * state that it passes costs little; the long ones receive it when it comes to rest. All are partial: the
 * database uses one only when the query repeats its condition, with the states as literals. It derives from the
 * records of the states.
 */
import type { ArrivalState, BatchState, RunState } from "../../model.ts";
import {
  ALL_ARRIVAL_STATES,
  ALL_BATCH_STATES,
  ALL_RUN_STATES,
  DELIVERABLE_STATES,
  RUN_STATES,
  type RunFacts,
  runStatesThat,
  UNMAPPED_STATES,
} from "../../states.ts";
import type { RunFilter } from "../ledger.ts";
import { brokenInvariant } from "../transitions.ts";

export interface RunIndex {
  readonly index: string;
  /**
   * The column by which the index groups the runs of a state, in the order of their ids; null when the ids
   * are in order through the whole state.
   */
  readonly by: "drop_name" | "lane" | null;
}

/** The condition of `runs_intake` and of `runs_unmapped`. */
export const UNMAPPED = anyOf(UNMAPPED_STATES);
/** The condition of `runs_delivery`, and of a part of it. */
export const TO_DELIVER = anyOf(statesIn("runs_delivery"));
export const DELIVERING = anyOf(DELIVERABLE_STATES);
/** The condition of `runs_resting` and of `runs_changed`. */
export const RESTING = anyOf(statesIn("runs_resting"));

/** Texts that the files of the schema insert: lists of states for its checks, and the conditions of the indexes. */
export const SCHEMA_VALUES = {
  run_states: literals(ALL_RUN_STATES),
  arrival_states: literals(ALL_ARRIVAL_STATES),
  batch_states: literals(ALL_BATCH_STATES),
  is_unmapped: ofRow(UNMAPPED),
  is_to_deliver: ofRow(TO_DELIVER),
  is_unsettled: ofRow(anyOf(runStatesThat(isUnsettled))),
  is_unfinished: ofRow(anyOf(runStatesThat(isUnfinished))),
  is_resting: ofRow(RESTING),
};

/** A condition without the name of the table. */
function ofRow(condition: string): string {
  return condition.replaceAll("runs.", "");
}

export function runIndexOf(state: RunState, { unfinished, unsettled }: RunFilter): RunIndex {
  const facts = RUN_STATES[state];
  const { index } = facts;
  if (index === "runs_intake") return { index, by: "drop_name" };
  if (index === "runs_delivery") return { index, by: "lane" };
  if (unsettled === true && isUnsettled(facts)) return { index: "runs_unsettled", by: "lane" };
  if (unfinished === true && isUnfinished(facts)) return { index: "runs_unfinished", by: "drop_name" };
  return { index, by: null };
}

/** A state as a literal of SQL. Throws for any other text. */
export function literal(state: RunState): string {
  if (!Object.hasOwn(RUN_STATES, state))
    throw brokenInvariant("list runs", state, `"${state}" is not a state of a run`);
  return `'${state}'`;
}

/** States as a list in SQL: `'claimed', 'fetched'`. */
export function literals(states: readonly (RunState | BatchState | ArrivalState)[]): string {
  return states.map((state) => `'${state}'`).join(", ");
}

function isUnsettled({ isClosing, isAwaited }: RunFacts): boolean {
  return isClosing || isAwaited;
}

function isUnfinished({ index, isAwaited }: RunFacts): boolean {
  return index === "runs_resting" && !isAwaited;
}

function statesIn(index: RunFacts["index"]): readonly RunState[] {
  return runStatesThat((facts) => facts.index === index);
}

export function anyOf(states: readonly RunState[]): string {
  return `(${states.map((state) => `runs.state = ${literal(state)}`).join(" OR ")})`;
}
