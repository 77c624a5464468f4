/** A second set of values beside the shown ones: another state of the same points, or an earlier period. */
import { addToLocal, msOfLocal } from "../kit/zone.ts";
import { sameTimes } from "./columns.ts";
import type { Parameters } from "./hub.ts";
import type { Series } from "./series.ts";
import type { Comparison } from "./state.ts";

interface Period {
  readonly from: string;
  readonly to: string;
  /** IANA. */
  readonly zone: string;
}

/** The question for the other values; null without a comparison. */
export function otherQuestion(question: Parameters, comparison: Comparison, period: Period): Parameters | null {
  if (comparison.kind === "none") return null;
  if (comparison.kind === "earlier") {
    const { from, to } = earlier(period, comparison);
    return { ...question, From: from, To: to };
  }
  const { VersionSince: _since, VersionTag: _tag, ...rest } = question;
  return { ...rest, AsOf: comparison.at };
}

function earlier({ from, to }: Period, { unit }: Comparison & { readonly kind: "earlier" }) {
  const back = (local: string) => (unit === "week" ? addToLocal(local, -7, "day") : addToLocal(local, -1, unit));
  return { from: back(from), to: back(to) };
}

/** The times of an earlier period become those of the shown one: equal wall clocks, counted from the beginning. */
export function besideShown(
  others: readonly Series[],
  shown: readonly Series[],
  comparison: Comparison,
  period: Period,
): readonly Series[] {
  if (comparison.kind !== "earlier") return others.map((one) => ({ ...one, isOther: true }));
  const before = earlier(period, comparison);
  const shift = wallOf(period.from) - wallOf(before.from);
  const shiftSeconds = (msOfLocal(period.from, period.zone) - msOfLocal(before.from, period.zone)) / 1_000;
  return others.map((one, at) => ({ ...one, isOther: true, times: shiftedTimes(one, shown[at], shift, shiftSeconds) }));
}

/** A shown value with the same wall clock gives its time; without one the distance of the periods counts. */
function shiftedTimes(
  { times, offsets }: Series,
  shown: Series | undefined,
  shiftMs: number,
  shiftSeconds: number,
): Float64Array {
  const wall = (seconds: number, offset: number) => seconds + 60 * offset;
  const known = new Map<number, number>();
  shown?.times.forEach((time, at) => {
    known.set(wall(time, shown.offsets[at] ?? 0), time);
  });
  const shifted = times.map(
    (time, at) => known.get(wall(time, offsets[at] ?? 0) + shiftMs / 1_000) ?? time + shiftSeconds,
  );
  // Of two values at the end of summer time, the later may have the earlier time.
  return shifted.sort();
}

/** The wall clock of a local time, as if it were one of UTC. */
function wallOf(local: string): number {
  return Date.parse(`${local.length === 10 ? `${local}T00:00` : local}Z`);
}

/** Shown values minus the others; none where one of them is missing. */
export function differences(shown: readonly Series[], others: readonly Series[]): readonly Series[] {
  return shown.map((one, at) => {
    const values = new Float64Array(one.times.length).fill(Number.NaN);
    for (const { mine, theirs } of pairsOf(one, others[at]))
      if (mine >= 0 && theirs >= 0) values[mine] = (one.values[mine] ?? 0) - (others[at]?.values[theirs] ?? 0);
    return { ...one, values, band: null };
  });
}

/** Numbers of values that differ, and of those that only one side has. */
export function countDifferences(shown: readonly Series[], others: readonly Series[]) {
  let [changed, added, missing] = [0, 0, 0];
  shown.forEach((one, at) => {
    for (const { mine, theirs } of pairsOf(one, others[at])) {
      if (theirs < 0) added += 1;
      else if (mine < 0) missing += 1;
      else if (!Object.is(one.values[mine], others[at]?.values[theirs])) changed += 1;
    }
  });
  return { changed, added, missing };
}

/** Places of equal times; -1 where one side has none. */
function* pairsOf(one: Series, other: Series | undefined): Generator<{ mine: number; theirs: number }> {
  for (const { places } of sameTimes([one.times, other?.times ?? new Float64Array()])) {
    const [mine = -1, theirs = -1] = places;
    yield { mine, theirs };
  }
}
