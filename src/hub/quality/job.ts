/** Tasks of the threads that judge series, and their results. */
import type { MeasuredVariable } from "../store/quality/variables.ts";
import type { QualitySettings } from "./judge.ts";
import type { LossSettings } from "./losses.ts";

export interface VariableAsk {
  readonly variable: MeasuredVariable;
  /** `source` and `period` by IANA name; `dates` Windows or IANA. */
  readonly zones: { readonly source: string; readonly period: string; readonly dates: string };
  /** Null: from the first point of the variable. */
  readonly fromMs: number | null;
  /** Not later than now. */
  readonly untilMs: number;
  readonly nowMs: number;
}

export type Ask<Settings> = VariableAsk & { readonly settings: Settings };

export type SeriesJob =
  | { readonly report: "losses"; readonly settings: LossSettings; readonly variables: readonly VariableAsk[] }
  | { readonly report: "quality"; readonly settings: QualitySettings; readonly variables: readonly VariableAsk[] };

export type SeriesAnswer =
  /** Rows as JSON, with commas between them, of the first variables: `judged` of them, at least one. */
  | { readonly kind: "rows"; readonly texts: readonly string[]; readonly judged: number }
  /** The database is at fault, and the same may succeed later. */
  | { readonly kind: "trouble"; readonly words: string };

const DECIMALS = 1e6;

/** Null where nothing is expected. */
export function share(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.round((part / whole) * DECIMALS) / DECIMALS;
}
