/** New readings beside the blocks of their variables, in the transaction that stores them. */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import { row, type Steps } from "../database.ts";
import type { VariableFacts } from "../store.ts";
import { type Block, blocksWithin } from "./blocks.ts";
import { packNew, TAIL_POINTS } from "./pack.ts";

/** New points of a variable that are worth blocks at once. */
const RUN_MIN = 1_000;

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

/** Blocks between whose dates there are readings: they have to become rows before these are written. */
export function* touchedBlocks(readings: ReadingColumns, segment: Segment): Steps<readonly Block[]> {
  const { variable, indices, firstMs, lastMs } = segment;
  const blocks = yield* blocksWithin(variable.id, firstMs, lastMs);
  let at = 0;
  return blocks.filter((block) => {
    while (at < indices.length && (readings.atMs[indices[at] ?? 0] ?? 0) < block.firstMs) at += 1;
    return at < indices.length && (readings.atMs[indices[at] ?? 0] ?? 0) <= block.lastMs;
  });
}

/**
 * Stores the readings of a long run as blocks where nothing is stored between their dates; returns those that are left
 * to be written as rows.
 */
export function* storeRun(readings: ReadingColumns, segment: Segment, numbers: FirstNumbers): Steps<Uint32Array> {
  const { variable, indices, firstMs, lastMs } = segment;
  if (!isRun(readings, segment)) return indices;
  const stored = yield* row(
    "SELECT 1 AS found FROM point WHERE variable_id = ? AND at_ms BETWEEN ? AND ? LIMIT 1",
    ...[variable.id, firstMs, lastMs],
  );
  if (stored !== undefined || (yield* blocksWithin(variable.id, firstMs, lastMs)).length > 0) return indices;
  const run = indices.subarray(0, -TAIL_POINTS);
  const column = (of: (index: number) => number) => {
    const values = new Float64Array(run.length);
    for (let at = 0; at < run.length; at += 1) values[at] = of(run[at] ?? 0);
    return values;
  };
  yield* packNew(variable.id, {
    atMs: column((index) => readings.atMs[index] ?? 0),
    values: column((index) => readings.value[index] ?? 0),
    origins: column((index) => numbers.firstOrigin + (readings.operation[index] ?? 0)),
  });
  return indices.subarray(-TAIL_POINTS);
}

/** Many readings without labels, each of another date. */
function isRun({ atMs, labels }: ReadingColumns, { variable, indices }: Segment): boolean {
  if (variable.isVersioned || indices.length < RUN_MIN + TAIL_POINTS) return false;
  return indices.every(
    (index, at) => labels[index] === null && (at === 0 || atMs[index] !== atMs[indices[at - 1] ?? 0]),
  );
}
