/** Columns of points that become one: stored ones, and readings that are merged into them. */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import { type Columns, columnsFor, sliced } from "./codec.ts";

export function concatenated(one: Columns, other: Columns): Columns {
  const { length } = one.atMs;
  const all = columnsFor(length + other.atMs.length);
  copyInto(all, one, 0);
  copyInto(all, other, length);
  return all;
}

function copyInto(all: Columns, one: Columns, place: number): void {
  all.atMs.set(one.atMs, place);
  all.values.set(one.values, place);
  all.origins.set(one.origins, place);
}

interface Fresh {
  readonly readings: ReadingColumns;
  /** In order of date and arrival. */
  readonly indices: Uint32Array;
  readonly numbers: FirstNumbers;
}

/** As though one after another: a reading that equals the stored one does not change where that came from. */
export function merged(
  stored: Columns,
  { readings, indices, numbers }: Fresh,
  replaced: number[],
): { readonly columns: Columns; readonly isChanged: boolean } {
  const capacity = stored.atMs.length + indices.length;
  const { atMs, values, origins } = columnsFor(capacity);
  const isAfter = (stored.atMs.at(-1) ?? Number.NEGATIVE_INFINITY) < (readings.atMs[indices[0] ?? 0] ?? 0);
  if (isAfter) copyInto({ atMs, values, origins }, stored, 0);
  let length = isAfter ? stored.atMs.length : 0;
  let at = length;
  let isChanged = false;
  /** All stored ones up to that date. */
  const putStored = (untilMs: number) => {
    for (; at < stored.atMs.length && (stored.atMs[at] ?? 0) <= untilMs; at += 1, length += 1) {
      atMs[length] = stored.atMs[at] ?? 0;
      values[length] = stored.values[at] ?? 0;
      origins[length] = stored.origins[at] ?? 0;
    }
  };
  for (let place = 0; place < indices.length; place += 1) {
    const index = indices[place] ?? 0;
    const ms = readings.atMs[index] ?? 0;
    putStored(ms);
    const value = readings.value[index] ?? 0;
    const isKnown = length > 0 && atMs[length - 1] === ms;
    if (isKnown) {
      replaced.push(index);
      if (values[length - 1] === value) continue;
      length -= 1;
    }
    atMs[length] = ms;
    values[length] = value;
    origins[length] = numbers.firstOrigin + (readings.operation[index] ?? 0);
    length += 1;
    isChanged = true;
  }
  putStored(Number.POSITIVE_INFINITY);
  return { columns: sliced({ atMs, values, origins }, 0, length), isChanged };
}
