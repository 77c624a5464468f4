/** The expected distance between the points of a variable: as declared on it, or learned from its own history. */
import type { StepFacts } from "#wire/index.ts";

export type CalendarUnit = "Day" | "Week" | "Month" | "Year";
export type Step =
  /** Shorter than a day: elapsed time. */
  | { readonly kind: "clock"; readonly ms: number }
  /** Days and longer: by the calendar of a zone. */
  | { readonly kind: "calendar"; readonly unit: CalendarUnit; readonly count: number };

export interface KnownStep {
  readonly step: Step;
  readonly facts: StepFacts;
}

export const UNKNOWN_STEP: StepFacts = { origin: "unknown", granularity: null, granularityTimeBase: null };

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** By the ids of the time periods referential. */
const CLOCK_MS: Readonly<Record<number, number>> = { 1: SECOND_MS, 2: MINUTE_MS, 3: HOUR_MS };
const CALENDAR: Readonly<Record<number, CalendarUnit>> = { 4: "Day", 5: "Week", 6: "Month", 7: "Year" };

/** Null: the variable declares none. */
export function declaredStep(granularity: number | null, base: number | null): KnownStep | null {
  if (granularity === null || granularity < 1 || base === null) return null;
  const facts: StepFacts = { origin: "declared", granularity, granularityTimeBase: base };
  const unit = CALENDAR[base];
  if (unit !== undefined) return { step: { kind: "calendar", unit, count: granularity }, facts };
  const unitMs = CLOCK_MS[base];
  if (unitMs === undefined) return null;
  const ms = granularity * unitMs;
  // 24 hours are meant as a day, which has 23 or 25 of them twice a year.
  if (ms % DAY_MS === 0) return { step: { kind: "calendar", unit: "Day", count: ms / DAY_MS }, facts };
  return { step: { kind: "clock", ms }, facts };
}

/** Differences that are enough to learn from. */
const DIFFERENCES_MIN = 8;
/** Share of the differences that must agree. */
const AGREEMENT = 0.6;
/** How far one that agrees may be from the step, as a share of the step. */
const TOLERANCE = 0.1;
/** Months have 28 to 31 days, and days 23 to 25 hours. */
const CALENDAR_BOUNDS = [
  [1, 4, 23 * HOUR_MS, 25 * HOUR_MS],
  [1, 5, 7 * DAY_MS - HOUR_MS, 7 * DAY_MS + HOUR_MS],
  [1, 6, 28 * DAY_MS - HOUR_MS, 31 * DAY_MS + HOUR_MS],
  [3, 6, 90 * DAY_MS - HOUR_MS, 92 * DAY_MS + HOUR_MS],
  [1, 7, 365 * DAY_MS - HOUR_MS, 366 * DAY_MS + HOUR_MS],
] as const;
const USUAL_MS = [
  ...[1, 2, 5, 10, 15, 20, 30].map((seconds) => seconds * SECOND_MS),
  ...[1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_MS),
];

/**
 * The step that most of the dates (ascending) keep: a usual one to which they are near, else their most frequent
 * distance in whole seconds. A string says why there is none.
 */
export function learnedStep(dates: readonly number[]): KnownStep | string {
  const differences = dates.slice(1).map((ms, index) => ms - (dates[index] ?? 0));
  if (differences.length < DIFFERENCES_MIN)
    return `no step is declared, and ${dates.length} points are too few to learn one`;
  const sharing = (low: number, high: number) =>
    differences.filter((one) => one >= low && one <= high).length / differences.length;
  for (const [granularity, base, low, high] of CALENDAR_BOUNDS)
    if (sharing(low, high) >= AGREEMENT) return learned(granularity, base);
  const usual = USUAL_MS.find((ms) => sharing(ms * (1 - TOLERANCE), ms * (1 + TOLERANCE)) >= AGREEMENT);
  const ms =
    usual ?? mostFrequent(differences.map((one) => Math.max(1, Math.round(one / SECOND_MS)) * SECOND_MS)).value;
  if (sharing(ms - SECOND_MS / 2, ms + SECOND_MS / 2) < AGREEMENT && usual === undefined)
    return "no step is declared, and the distances of its points are too uneven to learn one";
  if (ms % HOUR_MS === 0) return learned(ms / HOUR_MS, 3);
  return ms % MINUTE_MS === 0 ? learned(ms / MINUTE_MS, 2) : learned(ms / SECOND_MS, 1);
}

function learned(granularity: number, base: number): KnownStep | string {
  const known = declaredStep(granularity, base);
  if (known === null) return "no step is declared";
  return { ...known, facts: { ...known.facts, origin: "learned" } };
}

/** The smallest of several that are as frequent. */
export function mostFrequent(values: readonly number[]): { readonly value: number; readonly share: number } {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  let best = { value: 0, count: 0 };
  for (const [value, count] of counts)
    if (count > best.count || (count === best.count && value < best.value)) best = { value, count };
  return { value: best.value, share: values.length === 0 ? 0 : best.count / values.length };
}
