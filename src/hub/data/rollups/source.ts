/** Where the periods of a variable come from: its rollups, and the points that these do not cover. */
import { ianaZone } from "../../../wire/index.ts";
import type { Rollup } from "../../store/rollups/rollups.ts";
import type { PointStore, SampleRange, Samples, VariableFacts } from "../../store/store.ts";
import { bucketOf } from "../buckets.ts";
import type { PeriodSource } from "../periods.ts";

/** Rules of another version may cut days otherwise. */
export const RULES = process.versions["tz"] ?? "";

/** A query that reads fewer points has no need of a rollup. */
const WORTH_POINTS = 200;

/** Only the zones that most queries name have rollups, so that a reader cannot fill the store with all there are. */
export function isRolledZone(variable: Pick<VariableFacts, "siteZoneId">, zone: string): boolean {
  return zone === "UTC" || zone === ianaZone(variable.siteZoneId);
}

/** Rollups are not used, and what is read of points is not reported. */
export function pointsOnly(points: Pick<PointStore, "samples">, variable: VariableFacts): PeriodSource {
  return { samples: (range) => points.samples(variable, range), rollups: [] };
}

export function rolledSource(
  points: PointStore,
  variable: VariableFacts,
  zone: string,
  rollups: readonly Rollup[],
): PeriodSource {
  return { samples: (range) => readAndReport(points, variable, zone, range), rollups };
}

async function* readAndReport(
  points: PointStore,
  variable: VariableFacts,
  zone: string,
  range: SampleRange,
): AsyncGenerator<Samples> {
  let count = 0;
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = Number.NEGATIVE_INFINITY;
  for await (const samples of points.samples(variable, range)) {
    const { atMs } = samples;
    const [one = 0, other = 0] = [atMs[0], atMs.at(-1)];
    count += atMs.length;
    firstMs = Math.min(firstMs, one, other);
    lastMs = Math.max(lastMs, one, other);
    yield samples;
  }
  if (count < WORTH_POINTS) return;
  // The day of the last point may get more.
  const endMs = bucketOf(lastMs, "Day", zone).startMs ?? lastMs;
  const first = bucketOf(firstMs, "Day", zone);
  const isCut = range.fromMs !== null && range.fromMs > (first.startMs ?? firstMs);
  const fromMs = isCut ? first.endMs : (first.startMs ?? firstMs);
  if (fromMs < endMs) points.rollups.report({ variable, zone, fromMs, endMs });
}
