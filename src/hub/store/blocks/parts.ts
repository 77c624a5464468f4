/** The readings of a segment by the blocks that they touch. */
import type { ReadingColumns } from "../columns.ts";
import type { VariableFacts } from "../records.ts";
import { BLOCK_POINTS, type Block } from "./blocks.ts";

export type BlockKey = Omit<Block, "data">;

/** Readings that follow each other: places in the indices of their segment. */
export interface Part {
  readonly from: number;
  readonly end: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The block between whose dates they are; null: none. */
  readonly within: BlockKey | null;
  /** The block before. */
  readonly after: BlockKey | null;
}

/** `keys`: the block before the first reading, and those that begin up to the last, in order of date. */
export function partsOf(readings: ReadingColumns, { indices }: Segment, keys: readonly BlockKey[]): readonly Part[] {
  const parts: Part[] = [];
  const dateAt = (at: number) => readings.atMs[indices[at] ?? 0] ?? 0;
  let from = 0;
  const add = (untilMs: number, within: BlockKey | null, after: BlockKey | null) => {
    let end = from;
    while (end < indices.length && dateAt(end) < untilMs) end += 1;
    if (end > from) parts.push({ from, end, firstMs: dateAt(from), lastMs: dateAt(end - 1), within, after });
    from = end;
  };
  let after: BlockKey | null = null;
  for (const key of keys) {
    add(key.firstMs, null, after);
    add(key.lastMs + 1, key, after);
    after = key;
  }
  add(Number.POSITIVE_INFINITY, null, after);
  return parts;
}

/** Their points take 33 KB a block while they are in memory. */
const SLICE_BLOCKS = 64;

/**
 * Slices of parts that need few blocks at one time, however many the parts need together. What one slice changes is not
 * needed by another, since each begins at another block than the one before ends with.
 */
export function* slicesOf(parts: readonly Part[]): Generator<readonly Part[]> {
  let from = 0;
  let blocks = 0;
  for (const [index, { within, after }] of parts.entries()) {
    if (within === null && after === parts[index - 1]?.within) continue;
    if (blocks === SLICE_BLOCKS) {
      yield parts.slice(from, index);
      from = index;
      blocks = 0;
    }
    blocks += 1;
  }
  yield parts.slice(from);
}

/** Blocks whose points are needed. */
export function neededBlocks(parts: readonly Part[]): readonly BlockKey[] {
  const needed = new Set<BlockKey>();
  for (const { within, after } of parts) {
    if (within !== null) needed.add(within);
    else if (after !== null && after.points < BLOCK_POINTS) needed.add(after);
  }
  return [...needed];
}

// New readings beside the blocks of their variables, in the transaction that stores them.

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
