/** Calculations as both databases keep them. */
import type { Row } from "../database.ts";
import { number, text } from "../structure-rows.ts";
import type { DueCause } from "./marks.ts";

export type CalculationState = "running" | "waiting" | "storing" | "done" | "failed";

/** Dates that were due: of an input, or of the calculated variable itself (null). Older records have no cause. */
export type DueDates = readonly [inputId: number | null, fromMs: number, toMs: number, cause?: DueCause];

export interface Calculation {
  readonly id: number;
  readonly accountId: number;
  readonly variableId: number;
  readonly state: CalculationState;
  readonly fromMs: number;
  readonly toMs: number;
  readonly due: readonly DueDates[];
  readonly defaultVersion: string;
  readonly startedMs: number;
  readonly finishedMs: number | null;
  /** Outputs before it were handed over; null: none yet. */
  readonly cursorMs: number | null;
  /** From the first to the last date of the outputs to calculate; null until they are known. */
  readonly beginMs: number | null;
  readonly endMs: number | null;
  /** End of the part in work, which a repeat cuts in the same place; null: none is in work. */
  readonly partMs: number | null;
  /** Operations that were accepted. */
  readonly sent: number;
  readonly outputs: number;
  readonly stored: number;
  readonly replaced: number;
  readonly discarded: number;
  readonly dropped: number;
  readonly attempts: number;
  /** Nodes that ended with the part in work, in a row. */
  readonly takeovers: number;
  readonly message: string | null;
}

export function calculationOfRow(one: Row): Calculation {
  const count = (name: string) => Number(one[name]);
  return {
    id: count("id"),
    accountId: count("account_id"),
    variableId: count("variable_id"),
    state: String(one["state"]) as CalculationState,
    fromMs: count("from_ms"),
    toMs: count("to_ms"),
    due: JSON.parse(String(one["due"])),
    defaultVersion: String(one["default_version"]),
    startedMs: count("started_ms"),
    finishedMs: number(one["finished_ms"]),
    cursorMs: number(one["cursor_ms"]),
    beginMs: number(one["begin_ms"]),
    endMs: number(one["end_ms"]),
    partMs: number(one["part_ms"]),
    sent: count("sent"),
    outputs: count("outputs"),
    stored: count("stored"),
    replaced: count("replaced"),
    discarded: count("discarded"),
    dropped: count("dropped"),
    attempts: count("attempts"),
    takeovers: count("takeovers"),
    message: text(one["message"]),
  };
}
