/**
 * The part of an input that a formula reads for a window of outputs, and the outputs that a change of the input
 * affects. Intervals are milliseconds since 1970 in UTC, both ends included.
 */
import type { Granularity } from "#wire/index.ts";
import { bucketOf } from "../../data/buckets.ts";

export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The dates of an input that a formula sees beside those of the window. */
export type InputPeriod =
  | { readonly kind: "window" }
  /** So many units of the calendar before the window. */
  | { readonly kind: "relative"; readonly count: number; readonly unit: CalendarUnit }
  /** Always the same dates; null: open. The end is excluded. */
  | { readonly kind: "absolute"; readonly fromMs: number | null; readonly endMs: number | null };

export const CALENDAR_UNITS = ["seconds", "minutes", "hours", "days", "weeks", "months", "years"] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

export interface InputReach {
  /** In which the formula sees the input. */
  readonly granularity: Granularity;
  /** Periods that an expression collects by itself. */
  readonly collected: readonly Granularity[];
  readonly period: InputPeriod;
  /** Points before the window; of a granularity: periods that have points. */
  readonly points: number;
}

/** Finds points of one input in one direction of time. */
export interface DirectedSteps {
  /** The date of the point so many points beyond a date; null: there are fewer. */
  nth(ms: number, count: number): Promise<number | null>;
  /** Dates of the next points beyond a date, the nearest first; fewer than `limit`: there are no more. */
  next(ms: number, limit: number): Promise<readonly number[]>;
}

export interface PointSteps {
  readonly after: DirectedSteps;
  readonly before: DirectedSteps;
}

/** Moves an instant by units of the calendar in a zone. */
function shifted(ms: number, count: number, unit: CalendarUnit, zone: string): number {
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
  return at.add({ [unit]: count }).epochMilliseconds;
}

const INSTANT_UNITS: readonly CalendarUnit[] = ["seconds", "minutes", "hours"];

/**
 * The last instant from which so many units back still reach one. Adding the units is not enough: 28 February is a
 * month before 28, 29, 30 and 31 March, and an hour that the clocks repeat is a day before one hour alone.
 */
function lastReaching(ms: number, count: number, unit: CalendarUnit, zone: string): number {
  if (INSTANT_UNITS.includes(unit)) return shifted(ms, count, unit, zone);
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
  const wall = at.toPlainDateTime();
  // Wall times of a repeated hour lead to its first pass: all of them reach the second one.
  const first = wall.toZonedDateTime(zone, { disambiguation: "earlier" }).epochMilliseconds;
  const last = wall.add({ milliseconds: Math.max(0, ms - first) });
  const date = last.toPlainDate();
  const backFrom = (day: Temporal.PlainDate) => Temporal.PlainDate.compare(day.subtract({ [unit]: count }), date);
  let day = date.add({ [unit]: count });
  for (let next = day.add({ days: 1 }); backFrom(next) <= 0; next = next.add({ days: 1 })) day = next;
  const reached = day.toPlainDateTime(backFrom(day) < 0 ? END_OF_DAY : last.toPlainTime());
  return reached.toZonedDateTime(zone, { disambiguation: "later" }).epochMilliseconds;
}

const END_OF_DAY = "23:59:59.999";

/** The whole periods of a granularity that an interval touches. */
export function wholePeriods({ fromMs, toMs }: Interval, granularity: Granularity, zone: string): Interval {
  if (granularity === "Raw" || granularity === "All") return { fromMs, toMs };
  return {
    fromMs: bucketOf(fromMs, granularity, zone).startMs ?? fromMs,
    toMs: bucketOf(toMs, granularity, zone).endMs - 1,
  };
}

function wholesOf({ granularity, collected }: InputReach, interval: Interval, zone: string): Interval {
  const all = [granularity, ...collected].map((one) => wholePeriods(interval, one, zone));
  return all.reduce(union, interval);
}

/** Every date of the input counts for every output. */
function isTimeless({ granularity, period }: InputReach): boolean {
  return period.kind === "absolute" || (granularity === "All" && period.kind === "window");
}

/** The dates of an input that a formula sees; null: open. */
export async function seenDates(
  reach: InputReach,
  window: Interval,
  zone: string,
  steps: PointSteps,
): Promise<{ readonly fromMs: number | null; readonly toMs: number | null }> {
  const { period, points } = reach;
  if (period.kind === "absolute")
    return { fromMs: period.fromMs, toMs: period.endMs === null ? null : period.endMs - 1 };
  if (isTimeless(reach)) return { fromMs: null, toMs: null };
  const { fromMs, toMs } = wholesOf(reach, window, zone);
  const starts = [fromMs];
  if (period.kind === "relative") {
    const before = shifted(fromMs, -period.count, period.unit, zone);
    starts.push(wholesOf(reach, { fromMs: before, toMs: before }, zone).fromMs);
  }
  if (points > 0) starts.push(await stepped(reach, zone, { atMs: fromMs, steps: steps.before, end: "fromMs" }));
  return { fromMs: Math.min(...starts), toMs };
}

interface Stepping {
  readonly atMs: number;
  readonly steps: DirectedSteps;
  readonly end: keyof Interval;
}

/** The date that the points of a reach lead to; where there are fewer, an infinite one. */
async function stepped(reach: InputReach, zone: string, { atMs, steps, end }: Stepping): Promise<number> {
  const none = end === "fromMs" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const isPlain = reach.collected.length === 0 && (reach.granularity === "Raw" || reach.granularity === "All");
  if (isPlain) return (await steps.nth(atMs, reach.points)) ?? none;
  const isCounted = (ms: number, reached: number) => (end === "fromMs" ? ms >= reached : ms <= reached);
  let reached = atMs;
  let left = reach.points;
  for (let limit = DATES_FIRST; left > 0; ) {
    const dates = await steps.next(reached, limit);
    const before = left;
    for (const ms of dates) {
      if (left === 0) break;
      if (isCounted(ms, reached)) continue;
      reached = wholesOf(reach, { fromMs: ms, toMs: ms }, zone)[end];
      left -= 1;
    }
    if (left > 0 && dates.length < limit) return none;
    const isDense = (before - left) * POINTS_OF_QUERY < dates.length;
    limit = isDense ? Math.ceil(limit / 2) : Math.min(2 * limit, DATES_AT_ONCE);
  }
  return reached;
}

/** Dates of one query that counts periods; few where periods have many points, which the next query passes over. */
const DATES_FIRST = 64;
const DATES_AT_ONCE = 5_000;
/** A query costs as much as so many dates. */
const POINTS_OF_QUERY = 100;

/**
 * The outputs that a change of an input affects. `extent`: from the first to the last date of all inputs, which bounds
 * what is open.
 */
export async function affectedBy(
  reach: InputReach,
  change: Interval,
  { zone, extent, steps }: { readonly zone: string; readonly extent: Interval; readonly steps: PointSteps },
): Promise<Interval | null> {
  const { period, points } = reach;
  if (period.kind === "absolute") {
    const isSeen =
      (period.fromMs === null || change.toMs >= period.fromMs) &&
      (period.endMs === null || change.fromMs < period.endMs);
    return isSeen ? extent : null;
  }
  if (isTimeless(reach)) return extent;
  const whole = wholesOf(reach, change, zone);
  const ends = [whole.toMs];
  if (period.kind === "relative") {
    const last = lastReaching(whole.toMs, period.count, period.unit, zone);
    ends.push(wholesOf(reach, { fromMs: last, toMs: last }, zone).toMs);
  }
  if (points > 0) {
    const reached = await stepped(reach, zone, { atMs: whole.toMs, steps: steps.after, end: "toMs" });
    ends.push(Math.min(reached, Math.max(whole.toMs, extent.toMs)));
  }
  return { fromMs: whole.fromMs, toMs: Math.max(...ends) };
}

export function union(one: Interval, other: Interval): Interval {
  return { fromMs: Math.min(one.fromMs, other.fromMs), toMs: Math.max(one.toMs, other.toMs) };
}

/** In order of time; those that overlap or adjoin become one. */
export function merged(intervals: readonly Interval[]): readonly Interval[] {
  const all: Interval[] = [];
  for (const interval of intervals.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const last = all.at(-1);
    if (last !== undefined && interval.fromMs <= last.toMs + 1) all[all.length - 1] = union(last, interval);
    else all.push(interval);
  }
  return all;
}
