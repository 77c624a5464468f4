/** Columns of points that become one: stored ones, and readings that are merged into them. */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import type { Columns } from "./codec.ts";

export function concatenated(one: Columns, other: Columns): Columns {
  const joined = (of: (columns: Columns) => Float64Array) => {
    const all = new Float64Array(of(one).length + of(other).length);
    all.set(of(one));
    all.set(of(other), of(one).length);
    return all;
  };
  return {
    atMs: joined(({ atMs }) => atMs),
    values: joined(({ values }) => values),
    origins: joined(({ origins }) => origins),
  };
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
  const [atMs, values, origins] = [0, 1, 2].map(() => new Float64Array(capacity)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  let [length, at, isChanged] = [0, 0, false];
  const put = (ms: number, value: number, origin: number) => {
    atMs[length] = ms;
    values[length] = value;
    origins[length] = origin;
    length += 1;
  };
  const putStored = () => {
    put(stored.atMs[at] ?? 0, stored.values[at] ?? 0, stored.origins[at] ?? 0);
    at += 1;
  };
  for (const index of indices) {
    const ms = readings.atMs[index] ?? 0;
    while (at < stored.atMs.length && (stored.atMs[at] ?? 0) <= ms) putStored();
    const value = readings.value[index] ?? 0;
    const origin = numbers.firstOrigin + (readings.operation[index] ?? 0);
    if (length === 0 || atMs[length - 1] !== ms) put(ms, value, origin);
    else {
      replaced.push(index);
      if (values[length - 1] === value) continue;
      values[length - 1] = value;
      origins[length - 1] = origin;
    }
    isChanged = true;
  }
  while (at < stored.atMs.length) putStored();
  return {
    columns: {
      atMs: atMs.subarray(0, length),
      values: values.subarray(0, length),
      origins: origins.subarray(0, length),
    },
    isChanged,
  };
}
