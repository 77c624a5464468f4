/** A period as stretches that are read from points, and stretches whose days are known from rollups. */

import type { PointRange } from "../../store/records.ts";
import type { Rollup } from "../../store/rollups/rollups.ts";
import { type Day, daysOfBytes } from "./days.ts";

type Bounds = Pick<PointRange, "fromMs" | "lastMs">;

export type Stretch =
  | { readonly kind: "points"; readonly bounds: Bounds }
  /** In order of date; none is cut by the bounds of the period. */
  | { readonly kind: "days"; readonly days: readonly Day[] };

/** In order of date, without gaps. Rollups are in order of date, and all of one zone. */
export function stretchesOf({ fromMs, lastMs }: Bounds, rollups: readonly Rollup[]): readonly Stretch[] {
  const stretches: Stretch[] = [];
  let nextMs = fromMs;
  for (const rollup of rollups) {
    const { beginMs, endMs, days } = inside(rollup, { fromMs, lastMs });
    if (days.length === 0 || (nextMs !== null && beginMs < nextMs)) continue;
    if (nextMs === null || nextMs < beginMs)
      stretches.push({ kind: "points", bounds: { fromMs: nextMs, lastMs: beginMs - 1 } });
    stretches.push({ kind: "days", days });
    nextMs = endMs;
  }
  if (nextMs === null || lastMs === null || nextMs <= lastMs)
    stretches.push({ kind: "points", bounds: { fromMs: nextMs, lastMs } });
  return stretches;
}

/** The part of a rollup that is within the period; a day at its edges that is cut is not. */
function inside(rollup: Rollup, { fromMs, lastMs }: Bounds) {
  const all = daysOfBytes(rollup.days);
  const isCutBefore = fromMs !== null && fromMs > rollup.fromMs;
  const isCutAfter = lastMs !== null && lastMs < rollup.endMs - 1;
  const days = all.filter(
    (day) => !((isCutBefore && day.startMs < (fromMs ?? 0)) || (isCutAfter && day.endMs - 1 > (lastMs ?? 0))),
  );
  // Between the bound and the next day that has points there may be a part of another one.
  const beginMs = isCutBefore ? (days[0]?.startMs ?? rollup.endMs) : rollup.fromMs;
  const endMs = isCutAfter ? (days.at(-1)?.endMs ?? beginMs) : rollup.endMs;
  return { beginMs, endMs, days };
}
