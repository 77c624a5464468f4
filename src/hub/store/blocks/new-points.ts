/** New readings beside the blocks of their variables, in the transaction that stores them. */
import type { ReadingColumns } from "../columns.ts";
import type { VariableFacts } from "../store.ts";

/** The readings of one variable, in order of date and arrival. */
export interface Segment {
  readonly variable: VariableFacts;
  readonly indices: Uint32Array;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** `order`: by variable, date and arrival. */
export function* segmentsOf(readings: ReadingColumns, order: Uint32Array): Generator<Segment> {
  for (let from = 0; from < order.length; ) {
    const position = readings.variable[order[from] ?? 0] ?? 0;
    let end = from + 1;
    while (end < order.length && readings.variable[order[end] ?? 0] === position) end += 1;
    const variable = readings.variables[position];
    if (variable === undefined) throw new RangeError("a reading names no variable of its columns");
    const indices = order.subarray(from, end);
    const dateOf = (index: number | undefined) => readings.atMs[index ?? 0] ?? 0;
    yield { variable, indices, firstMs: dateOf(indices[0]), lastMs: dateOf(indices.at(-1)) };
    from = end;
  }
}

/** Whether any of the readings has to be a row of its own. */
export function hasLabels(readings: ReadingColumns, { indices }: Segment): boolean {
  return indices.some((index) => readings.labelsOf(index) !== null);
}
