/** A second set of values beside the shown ones: another state of the same points, or an earlier period. */
import { addToLocal, msOfLocal } from "../kit/zone.ts";
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
  const times = new Map(
    shown.flatMap((one) => one.dates.map((date, at) => [wallOf(date), one.times[at] ?? 0] as const)),
  );
  return others.map((one) => ({
    ...one,
    isOther: true,
    times: one.dates.map((date, at) => times.get(wallOf(date) + shift) ?? (one.times[at] ?? 0) + shiftSeconds),
  }));
}

/** The wall clock of a date as the hub writes it, as if it were one of UTC. */
function wallOf(date: string): number {
  return Date.parse(`${date.length === 10 ? `${date}T00:00` : date.slice(0, 19)}Z`);
}

/** Shown values minus the others, where both are or one is missing (null); only where they differ. */
export function differences(shown: readonly Series[], others: readonly Series[]): readonly Series[] {
  return shown.map((one, at) => {
    const other = others[at];
    const before = new Map(other?.times.map((time, index) => [time, other.values[index] ?? null]));
    const values = one.times.map((time, index) => {
      const [now, then] = [one.values[index] ?? null, before.get(time) ?? null];
      return now === null || then === null ? null : now - then;
    });
    return { ...one, values, band: null };
  });
}

/** Numbers of values that differ, and of those that only one side has. */
export function countDifferences(shown: readonly Series[], others: readonly Series[]) {
  let [changed, added, missing] = [0, 0, 0];
  shown.forEach((one, at) => {
    const other = others[at];
    const before = new Map(other?.times.map((time, index) => [time, other.values[index] ?? null]));
    one.times.forEach((time, index) => {
      if (!before.has(time)) added += 1;
      else if (before.get(time) !== one.values[index]) changed += 1;
      before.delete(time);
    });
    missing += before.size;
  });
  return { changed, added, missing };
}
