/** The order in which the files of a drop are picked up, and recorded. */

import type { Clock } from "#core/clock.ts";
import { compareNames } from "#core/text.ts";
import type { FileEntry } from "../model.ts";

/** `modified`: older content first; `name`: by the path, numbers in it by their value. */
export type PickupOrder = "modified" | "name";

type Named = Pick<FileEntry, "path" | "mtime">;

/** With a flag whether its time is a number, as it is at most drops. */
export type Timed<File extends Named> = File & { readonly numeric: boolean };

export function timed<File extends Named>(file: File): Timed<File> {
  return { ...file, numeric: NUMERIC.test(file.mtime) };
}

export function compareIn(order: PickupOrder = "modified"): (one: Timed<Named>, other: Timed<Named>) => number {
  return order === "name" ? byName : byAge;
}

/** Files that are sorted at a time: a few megabytes, and more files than most drops have. */
const SORTED_AT_ONCE = 10_000;

export interface Group {
  readonly entries: readonly FileEntry[];
  /** Milliseconds of the monotonic clock; none of them was listed before that. */
  readonly listedMs: number;
}

/**
 * A listing in groups of at most `size`, sorted as far as its length permits. A folder lists its files in no
 * order. Recorded in the order of pickup, the files of one list are adjacent in the ledger, and a commit
 * writes a few of its pages instead of one for each file. Files that were listed before a fault come first.
 */
export async function* inPickupOrder(
  listing: AsyncIterable<readonly FileEntry[]>,
  size: number,
  clock: Pick<Clock, "monotonicMs">,
  order?: PickupOrder,
): AsyncGenerator<Group> {
  const compare = compareIn(order);
  let listedMs = clock.monotonicMs();
  const sorted = (some: Timed<FileEntry>[]) => chunksOf(some.sort(compare), size, listedMs);
  let some: Timed<FileEntry>[] = [];
  let fault: { readonly thrown: unknown } | null = null;
  try {
    for await (const entries of listing)
      for (const entry of entries) {
        some.push(timed(entry));
        if (some.length < SORTED_AT_ONCE) continue;
        yield* sorted(some);
        some = [];
        listedMs = clock.monotonicMs();
      }
  } catch (thrown) {
    fault = { thrown };
  }
  yield* sorted(some);
  if (fault !== null) throw fault.thrown;
}

function* chunksOf(files: readonly FileEntry[], size: number, listedMs: number): Generator<Group> {
  for (let at = 0; at < files.length; at += size) {
    const some = files.slice(at, at + size);
    const entries = some.map(({ path, size: bytes, mtime }) => ({ path, size: bytes, mtime }));
    yield { entries, listedMs };
  }
}

/**
 * Older content first, as far as the drop's times are comparable, then by name: a correction that came during
 * a pause is not overwritten by the file that it corrects.
 */
function byAge(one: Timed<Named>, other: Timed<Named>): number {
  const numeric = one.numeric && other.numeric && one.mtime.length === other.mtime.length;
  // For texts of equal length, the order of the texts is that of the numbers.
  if (numeric && one.mtime !== other.mtime) return one.mtime < other.mtime ? -1 : 1;
  return one.path < other.path ? -1 : Number(one.path > other.path);
}

function byName(one: Named, other: Named): number {
  return compareNames(one.path, other.path);
}

const NUMERIC = /^\d+(\.\d+)?$/;
