/** Points collected into the periods of a granularity, for /data and for the inputs of calculated variables. */
import type { Rollup } from "../store/rollups/rollups.ts";
import type { PointRange, PointRow } from "../store/store.ts";
import { Accumulator, type Bucket, type Buckets, holds } from "./buckets.ts";
import { stretchesOf } from "./rollups/stretches.ts";

export interface CollectedPeriod {
  readonly bucket: Bucket;
  readonly sums: Accumulator;
}

export interface PeriodSource {
  /** Chunks in order of date, as `PointStore.read`. */
  read(range: PointRange): AsyncIterable<readonly PointRow[]>;
  /** Of the zone of the periods, in order of date; empty where days do not suffice. */
  readonly rollups: readonly Rollup[];
}

export interface CollectingParts {
  readonly buckets: Buckets;
  /** Null: as stored. */
  readonly convert: ((value: number) => number) | null;
}

/** One array for each chunk of points, in the order of the range; periods without points are left out. */
export async function* collectPeriods(
  source: PeriodSource,
  range: PointRange,
  { buckets, convert }: CollectingParts,
): AsyncGenerator<readonly CollectedPeriod[]> {
  const state = { open: null as CollectedPeriod | null, finished: [] as CollectedPeriod[] };
  const sumsAt = (atMs: number): Accumulator => {
    const { open } = state;
    if (open !== null && holds(open.bucket, atMs)) return open.sums;
    if (open !== null) state.finished.push(open);
    const sums = new Accumulator();
    state.open = { bucket: buckets.at(atMs), sums };
    return sums;
  };
  const take = () => state.finished.splice(0);
  const stretches = stretchesOf(range, source.rollups);
  for (const stretch of inOrder(range, stretches)) {
    if (stretch.kind === "days") {
      // No longer period ends within a day of its zone.
      for (const day of inOrder(range, stretch.days)) sumsAt(day.firstMs).merge(day);
      if (state.finished.length > 0) yield take();
      continue;
    }
    for await (const chunk of source.read({ ...range, ...stretch.bounds })) {
      // Converts each value separately: a sum of temperatures cannot be converted afterwards.
      for (const { atMs, value } of chunk) sumsAt(atMs).add(convert === null ? value : convert(value), atMs);
      if (state.finished.length > 0) yield take();
    }
  }
  if (state.open !== null) yield [state.open];
}

function inOrder<Item>({ order }: PointRange, items: readonly Item[]): readonly Item[] {
  return order === "ASC" ? items : items.toReversed();
}
