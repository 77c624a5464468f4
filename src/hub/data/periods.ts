/** Points collected into the periods of a granularity, for /data and for the inputs of calculated variables. */
import type { Granularity } from "../../wire/index.ts";
import type { PointRow } from "../store/store.ts";
import { Accumulator, type Bucket, bucketOf } from "./buckets.ts";

export interface CollectedPeriod {
  readonly bucket: Bucket;
  readonly sums: Accumulator;
}

export interface CollectingParts {
  readonly granularity: Exclude<Granularity, "Raw">;
  /** IANA. */
  readonly zone: string;
  /** Null: as stored. */
  readonly convert: ((value: number) => number) | null;
}

/** One array for each chunk of points, which are in order of date; periods without points are left out. */
export async function* collectPeriods(
  chunks: AsyncIterable<readonly PointRow[]>,
  { granularity, zone, convert }: CollectingParts,
): AsyncGenerator<readonly CollectedPeriod[]> {
  let open: CollectedPeriod | null = null;
  for await (const chunk of chunks) {
    const finished: CollectedPeriod[] = [];
    for (const { atMs, value } of chunk) {
      if (open === null || !holds(open.bucket, atMs)) {
        if (open !== null) finished.push(open);
        open = { bucket: bucketOf(atMs, granularity, zone), sums: new Accumulator() };
      }
      // Converts each value separately: a sum of temperatures cannot be converted afterwards.
      open.sums.add(convert === null ? value : convert(value), atMs);
    }
    if (finished.length > 0) yield finished;
  }
  if (open !== null) yield [open];
}

function holds({ startMs, endMs }: Bucket, ms: number): boolean {
  return (startMs === null || ms >= startMs) && ms < endMs;
}
