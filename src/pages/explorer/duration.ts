/** A load duration curve: for which share of the time the values were so high or higher. */
import { isGapAfter, type Series } from "./series.ts";

/** Values from the highest down; none is missing. */
export interface Curve {
  readonly series: Series;
  readonly values: Float64Array;
  /** Shares of the time until the end of each value, 0 to 1; the last is 1. */
  readonly ends: Float64Array;
}

/** A value counts for as long as it holds: one of an hour as much as four of a quarter. */
export function curveOf(series: Series): Curve {
  const places = [...series.times.keys()].filter((at) => !Number.isNaN(series.values[at]));
  places.sort((one, other) => (series.values[other] ?? 0) - (series.values[one] ?? 0));
  const values = Float64Array.from(places, (at) => series.values[at] ?? 0);
  const ends = Float64Array.from(places, (at) => secondsOf(series, at));
  let total = 0;
  for (const [at, seconds] of ends.entries()) {
    total += seconds;
    ends[at] = total;
  }
  for (const at of ends.keys()) ends[at] = total === 0 ? (at + 1) / ends.length : (ends[at] ?? 0) / total;
  return { series, values, ends };
}

function secondsOf({ times, length, ...more }: Series, at: number): number {
  const [time = 0, next, before] = [times[at], times[at + 1], times[at - 1]];
  if (!isGapAfter({ ...more, times, length }, at)) return (next ?? time) - time;
  return length > 0 || before === undefined ? length : time - before;
}

/** The value that holds at a share of the time, 0 to 1; null where there are none. */
export function valueOfShare({ values, ends }: Curve, share: number): number | null {
  if (values.length === 0) return null;
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 1) > share) high = middle;
    else low = middle + 1;
  }
  return values[low] ?? null;
}

/** Shares of a table, in percent. */
export const SHARES = [0, 1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99, 100] as const;
