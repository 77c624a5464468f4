/** Makes the rollups of a period of one variable from its points. */
import type { ReadSpan, Rollup } from "../../store/rollups/rollups.ts";
import type { PointStore, SampleRange } from "../../store/store.ts";
import { type Bucket, Buckets, bucketOf } from "../buckets.ts";
import { collectPeriods } from "../periods.ts";
import { bytesOfDays, type Day } from "./days.ts";
import { pointsOnly, RULES } from "./source.ts";

interface Month {
  readonly bucket: Bucket;
  readonly days: Day[];
  hasHuge: boolean;
}

/**
 * From the beginning of the month of `fromMs` to `endMs`, which begins a day. False, and nothing was stored: points of
 * the period changed meanwhile.
 */
export async function buildRollups(points: PointStore, { variable, zone, fromMs, endMs }: ReadSpan): Promise<boolean> {
  const writes = await points.rollups.begin(variable.id, endMs);
  if (writes === null) return false;
  const range: SampleRange = {
    fromMs: bucketOf(fromMs, "Month", zone).startMs,
    lastMs: endMs - 1,
    order: "ASC",
    view: { kind: "latest" },
  };
  const months = new Map<number, Month>();
  const ofMonths = new Buckets("Month", zone);
  const parts = { buckets: new Buckets("Day", zone), convert: null, isOfParts: true };
  for await (const collected of collectPeriods(pointsOnly(points, variable), range, parts))
    for (const { bucket, sums } of collected) {
      const ofMonth = ofMonths.at(sums.earliestMs);
      const month = months.get(ofMonth.endMs) ?? { bucket: ofMonth, days: [], hasHuge: false };
      months.set(ofMonth.endMs, month);
      const day = sums.sums();
      if (day === null) month.hasHuge = true;
      else month.days.push({ ...day, startMs: bucket.startMs ?? day.firstMs, endMs: bucket.endMs });
    }
  const rollups = [...months.values()]
    .filter(({ hasHuge }) => !hasHuge)
    .map(
      ({ bucket, days }): Rollup => ({
        fromMs: bucket.startMs ?? 0,
        endMs: Math.min(bucket.endMs, endMs),
        days: bytesOfDays(days),
      }),
    );
  return await points.rollups.save(variable.id, writes, { zone, rules: RULES }, rollups);
}
