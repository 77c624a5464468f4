/** Points collected into the periods of a granularity, for /data and for the inputs of calculated variables. */

import type { Piece } from "../store/blocks/pieces.ts";
import type { SampleRange } from "../store/records.ts";
import type { Rollup } from "../store/rollups/rollups.ts";
import { Accumulator, type Bucket, type Buckets, holds } from "./buckets.ts";
import { stretchesOf } from "./rollups/stretches.ts";

export interface CollectedPeriod {
  readonly bucket: Bucket;
  readonly sums: Accumulator;
}

export interface PeriodSource {
  /** In order of date, as those of `PointStore`. */
  pieces(range: SampleRange): AsyncIterable<Piece>;
  /** Of the zone of the periods, in order of date; empty where days do not suffice. */
  readonly rollups: readonly Rollup[];
}

export interface CollectingParts {
  readonly buckets: Buckets;
  /** Null: as stored. */
  readonly convert: ((value: number) => number) | null;
  /** Of all aggregates that are asked for: they follow from sums of parts (`AGGREGATE_FACTS`). */
  readonly isOfParts: boolean;
}

/** One array for each piece of points, in the order of the range; periods without points are left out. */
export async function* collectPeriods(
  source: PeriodSource,
  range: SampleRange,
  { buckets, convert, isOfParts }: CollectingParts,
): AsyncGenerator<readonly CollectedPeriod[]> {
  const state = { open: null as CollectedPeriod | null, finished: [] as CollectedPeriod[] };
  const bucketAt = (atMs: number): Bucket => {
    const { open } = state;
    return open !== null && holds(open.bucket, atMs) ? open.bucket : buckets.at(atMs);
  };
  const periodOf = (bucket: Bucket): CollectedPeriod => {
    const { open } = state;
    if (open?.bucket === bucket) return open;
    if (open !== null) state.finished.push(open);
    state.open = { bucket, sums: new Accumulator() };
    return state.open;
  };
  const periodAt = (atMs: number) => periodOf(bucketAt(atMs));
  const take = () => state.finished.splice(0);
  const stretches = stretchesOf(range, source.rollups);
  for (const stretch of inOrder(range, stretches)) {
    if (stretch.kind === "days") {
      // No longer period ends within a day of its zone.
      for (const day of inOrder(range, stretch.days)) periodAt(day.firstMs).sums.merge(day);
      if (state.finished.length > 0) yield take();
      continue;
    }
    for await (const piece of source.pieces({ ...range, ...stretch.bounds })) {
      const { firstMs, lastMs, count } = piece;
      const bucket = isOfParts && convert === null ? bucketAt(firstMs) : null;
      const known = bucket !== null && holds(bucket, lastMs) ? piece.sums() : null;
      if (bucket === null || known === null) addPoints(piece, convert, periodAt);
      else periodOf(bucket).sums.merge({ ...known, count, firstMs });
      if (state.finished.length > 0) yield take();
    }
  }
  if (state.open !== null) yield [state.open];
}

function addPoints(
  piece: Piece,
  convert: ((value: number) => number) | null,
  periodAt: (atMs: number) => CollectedPeriod,
): void {
  const { atMs, values } = piece.samples();
  // Converts each value separately: a sum of temperatures cannot be converted afterwards.
  const given = convert === null ? values : values.map(convert);
  for (let from = 0; from < atMs.length; ) {
    const { bucket, sums } = periodAt(atMs[from] ?? 0);
    from = sums.addWithin(bucket, atMs, given, from);
  }
}

function inOrder<Item>({ order }: SampleRange, items: readonly Item[]): readonly Item[] {
  return order === "ASC" ? items : items.toReversed();
}
