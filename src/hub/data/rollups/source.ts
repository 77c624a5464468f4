/** Where the periods of a variable come from: its rollups, and the points that these do not cover. */
import { ianaZone } from "#wire/index.ts";
import type { Piece } from "../../store/blocks/pieces.ts";
import type { SampleRange, VariableFacts } from "../../store/records.ts";
import type { Rollup } from "../../store/rollups/rollups.ts";
import type { PointStore } from "../../store/store.ts";
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
export function pointsOnly(points: Pick<PointStore, "pieces">, variable: VariableFacts): PeriodSource {
  return { pieces: (range) => points.pieces(variable, range), rollups: [] };
}

export function rolledSource(
  points: PointStore,
  variable: VariableFacts,
  zone: string,
  rollups: readonly Rollup[],
): PeriodSource {
  return { pieces: (range) => readAndReport(points, variable, zone, range), rollups };
}

async function* readAndReport(
  points: PointStore,
  variable: VariableFacts,
  zone: string,
  range: SampleRange,
): AsyncGenerator<Piece> {
  let count = 0;
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = Number.NEGATIVE_INFINITY;
  for await (const piece of points.pieces(variable, range)) {
    count += piece.count;
    firstMs = Math.min(firstMs, piece.firstMs);
    lastMs = Math.max(lastMs, piece.lastMs);
    yield piece;
  }
  if (count < WORTH_POINTS) return;
  // The day of the last point may get more.
  const endMs = bucketOf(lastMs, "Day", zone).startMs ?? lastMs;
  const first = bucketOf(firstMs, "Day", zone);
  const isCut = range.fromMs !== null && range.fromMs > (first.startMs ?? firstMs);
  const fromMs = isCut ? first.endMs : (first.startMs ?? firstMs);
  if (fromMs < endMs) points.rollups.report({ variable, zone, fromMs, endMs });
}
