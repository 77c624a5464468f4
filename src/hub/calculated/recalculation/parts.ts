/** Cuts long windows into parts that end with a period of the calendar, so that memory holds one part. */
import type { Granularity } from "#wire/index.ts";
import { bucketOf } from "../../data/buckets.ts";
import { CALENDAR_UNITS, type CalendarUnit, type Interval } from "./reach.ts";

/** Points of one input in one part: a year of quarters of an hour, with a day to spare. */
export const PART_POINTS = 35_232;

type Cut = "Year" | "Month" | "Week" | "Day" | "Hour";
const CUTS: readonly Cut[] = ["Year", "Month", "Week", "Day", "Hour"];
/** Periods that a cut at the end of the other leaves whole. */
const KEEPS: Readonly<Record<Cut, readonly Granularity[]>> = {
  Year: ["Year", "Month", "Day", "Hour", "Minute"],
  Month: ["Month", "Day", "Hour", "Minute"],
  Week: ["Week", "Day", "Hour", "Minute"],
  Day: ["Day", "Hour", "Minute"],
  Hour: ["Hour", "Minute"],
};

/**
 * The end of the part that begins with the window: before `fullMs`, where the part has all the points that it may have
 * (null: it never has so many). A part holds one period of the coarsest cut at least.
 */
export function endOfPart(
  window: Interval,
  fullMs: number | null,
  granularities: readonly Granularity[],
  zone: string,
): number {
  if (fullMs === null || fullMs > window.toMs) return window.toMs;
  const fitting = CUTS.filter((cut) =>
    granularities.every((one) => one === "Raw" || one === "All" || KEEPS[cut].includes(one)),
  );
  const usable = fitting.length > 0 ? fitting : (["Year"] as const);
  for (const cut of usable) {
    const startMs = bucketOf(fullMs, cut, zone).startMs ?? window.fromMs;
    if (startMs > window.fromMs) return Math.min(startMs - 1, window.toMs);
  }
  const finest = usable.at(-1) ?? "Year";
  return Math.min(bucketOf(window.fromMs, finest, zone).endMs - 1, window.toMs);
}

/** The unit of a `periodTimeBase`, an id of the list of periods of time. Null: there is none of that id. */
export function unitOfTimeBase(id: number): CalendarUnit | null {
  return CALENDAR_UNITS[id - 1] ?? null;
}

/** A formula and the dates for which it holds; the end is excluded, null is open. */
export interface Validity {
  readonly fromMs: number | null;
  readonly endMs: number | null;
}

export interface Stretch<Formula> extends Interval {
  readonly formula: Formula;
}

/** The stretches of an interval in which a formula holds, in order of time; dates without a formula are left out. */
export function stretchesOf<Formula extends Validity>(
  formulas: readonly Formula[],
  { fromMs, toMs }: Interval,
): readonly Stretch<Formula>[] {
  return formulas
    .map((formula) => ({
      formula,
      fromMs: Math.max(fromMs, formula.fromMs ?? fromMs),
      toMs: Math.min(toMs, formula.endMs === null ? toMs : formula.endMs - 1),
    }))
    .filter((stretch) => stretch.fromMs <= stretch.toMs)
    .toSorted((one, other) => one.fromMs - other.fromMs);
}
