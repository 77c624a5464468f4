/**
 * Blocks of points: statements for both databases, within a transaction or a snapshot. A block has only points without
 * labels, and between its first and its last date the variable has no rows and no other block.
 */
import { change, type Row, row, rows, type Steps } from "../database.ts";
import { type Columns, packed, SPAN_MAX_MS, sliced, unpacked } from "./codec.ts";

/** Points of a full block. More would make corrections slower, fewer take more room. */
export const BLOCK_POINTS = 1_000;
const ROWS_AT_ONCE = 100;

export interface Block {
  readonly variableId: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly points: number;
  readonly data: Uint8Array;
}

export function blockOf(found: Row): Block {
  return {
    variableId: Number(found["variable_id"]),
    firstMs: Number(found["first_ms"]),
    lastMs: Number(found["last_ms"]),
    points: Number(found["points"]),
    data: found["data"] as Uint8Array,
  };
}

/** Blocks that have a date in the period, both ends included; parameters as `withinOf` gives them. */
export const WITHIN = `variable_id = ? AND first_ms BETWEEN
  coalesce((SELECT max(first_ms) FROM point_block WHERE variable_id = ? AND first_ms <= ?), ?) AND ? AND last_ms >= ?`;

export function withinOf(id: number, lowMs: number, highMs: number): number[] {
  return [id, id, lowMs, lowMs, highMs, lowMs];
}

/** In order of date. */
export function* blocksWithin(id: number, lowMs: number, highMs: number): Steps<readonly Block[]> {
  const sql = `SELECT * FROM point_block WHERE ${WITHIN} ORDER BY first_ms`;
  return (yield* rows(sql, ...withinOf(id, lowMs, highMs))).map(blockOf);
}

/** The points of a block in the period, both ends included. */
export function partOf(block: Block, lowMs: number, highMs: number): Columns {
  const columns = unpacked(block.data);
  if (lowMs <= block.firstMs && block.lastMs <= highMs) return columns;
  const from = placeOf(columns.atMs, lowMs);
  const end = placeOf(columns.atMs, highMs + 1);
  return sliced(columns, from, end);
}

/** Index of the first date that is not earlier. */
function placeOf(atMs: Float64Array, ms: number): number {
  let low = 0;
  for (let high = atMs.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((atMs[middle] ?? 0) < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface NewBlock extends Block {
  /** So that the latest point is found without unpacking. */
  readonly lastValue: number;
}

/** Blocks of nearly equal length; one has up to half more than `BLOCK_POINTS`, so that few points make no block. */
export function blocksOf(variableId: number, columns: Columns): readonly NewBlock[] {
  const { length } = columns.atMs;
  if (length === 0) return [];
  const count = Math.max(1, Math.round(length / BLOCK_POINTS));
  return Array.from({ length: count }, (_, index) => {
    const from = Math.floor((index * length) / count);
    return sliced(columns, from, Math.floor(((index + 1) * length) / count));
  })
    .flatMap(narrow)
    .map((part) => blockFrom(variableId, part));
}

function blockFrom(variableId: number, part: Columns): NewBlock {
  return {
    variableId,
    firstMs: part.atMs[0] ?? 0,
    lastMs: part.atMs.at(-1) ?? 0,
    points: part.atMs.length,
    data: packed(part),
    lastValue: part.values.at(-1) ?? 0,
  };
}

function narrow(columns: Columns): readonly Columns[] {
  const { atMs } = columns;
  if ((atMs.at(-1) ?? 0) - (atMs[0] ?? 0) <= SPAN_MAX_MS) return [columns];
  const middle = atMs.length >>> 1;
  return [sliced(columns, 0, middle), sliced(columns, middle, atMs.length)].flatMap(narrow);
}

export function* addBlocks(id: number, columns: Columns): Steps<void> {
  for (const block of blocksOf(id, columns)) yield* putBlock(block);
}

/** Fails where a block begins at the same date, whose points would be lost. */
export function* putBlock({ variableId, firstMs, lastMs, points, data, lastValue }: NewBlock): Steps<void> {
  yield* change(
    "INSERT INTO point_block (variable_id, first_ms, last_ms, points, data, last_value) VALUES (?, ?, ?, ?, ?, ?)",
    ...[variableId, firstMs, lastMs, points, data, lastValue],
  );
}

/** Of the block that begins at the same date. */
export function* replaceBlock({ variableId, firstMs, lastMs, points, data, lastValue }: NewBlock): Steps<void> {
  const changed = yield* change(
    "UPDATE point_block SET last_ms = ?, points = ?, data = ?, last_value = ? WHERE variable_id = ? AND first_ms = ?",
    ...[lastMs, points, data, lastValue, variableId, firstMs],
  );
  if (changed !== 1) throw new RangeError("a block of points is no longer where it was found");
}

type BlockPlace = Pick<Block, "variableId" | "firstMs">;

export function* dataOf({ variableId, firstMs }: BlockPlace): Steps<Uint8Array> {
  const found = yield* row("SELECT data FROM point_block WHERE variable_id = ? AND first_ms = ?", variableId, firstMs);
  if (found === undefined) throw new RangeError("a block of points is no longer where it was found");
  return found["data"] as Uint8Array;
}

export function* removeBlock({ variableId, firstMs }: BlockPlace): Steps<void> {
  yield* change("DELETE FROM point_block WHERE variable_id = ? AND first_ms = ?", variableId, firstMs);
}

/** Makes rows of a block again. */
export function* openBlock(block: BlockPlace, { atMs, values, origins }: Columns): Steps<void> {
  yield* removeBlock(block);
  for (let from = 0; from < atMs.length; from += ROWS_AT_ONCE) {
    const end = Math.min(from + ROWS_AT_ONCE, atMs.length);
    const places = Array.from({ length: end - from }, () => "(?, ?, ?, ?)").join(", ");
    const given: number[] = [];
    for (let index = from; index < end; index += 1)
      given.push(block.variableId, atMs[index] ?? 0, values[index] ?? 0, origins[index] ?? 0);
    yield* change(`INSERT INTO point (variable_id, at_ms, value, origin_id) VALUES ${places}`, ...given);
  }
}

export interface HeldInBlocks {
  readonly points: number;
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

/** Both ends included. */
export function* heldInBlocks(id: number, lowMs: number, highMs: number): Steps<HeldInBlocks> {
  const whole = yield* row(
    `SELECT sum(points) AS points, min(first_ms) AS first, max(last_ms) AS last FROM point_block
      WHERE variable_id = ? AND first_ms >= ? AND last_ms <= ? AND first_ms <= ?`,
    ...[id, lowMs, highMs, highMs],
  );
  let points = Number(whole?.["points"] ?? 0);
  const dates = points === 0 ? [] : [Number(whole?.["first"]), Number(whole?.["last"])];
  for (const block of yield* edges(id, lowMs, highMs)) {
    const { atMs } = partOf(block, lowMs, highMs);
    points += atMs.length;
    dates.push(...atMs.subarray(0, 1), ...atMs.subarray(-1));
  }
  if (points === 0) return { points, firstMs: null, lastMs: null };
  return { points, firstMs: Math.min(...dates), lastMs: Math.max(...dates) };
}

/** Both ends included; a block that is cut leaves blocks of what is outside. */
export function* removeFromBlocks(id: number, lowMs: number, highMs: number): Steps<void> {
  for (const block of yield* edges(id, lowMs, highMs)) {
    yield* removeBlock(block);
    for (const rest of [partOf(block, block.firstMs, lowMs - 1), partOf(block, highMs + 1, block.lastMs)])
      yield* addBlocks(id, rest);
  }
  yield* change(
    "DELETE FROM point_block WHERE variable_id = ? AND first_ms >= ? AND first_ms <= ? AND last_ms <= ?",
    ...[id, lowMs, highMs, highMs],
  );
}

/** The blocks that the ends of a period cut, two at most. */
function* edges(id: number, lowMs: number, highMs: number): Steps<readonly Block[]> {
  const found = yield* rows(
    `SELECT * FROM point_block WHERE ${WITHIN} AND (first_ms < ? OR last_ms > ?) ORDER BY first_ms`,
    ...withinOf(id, lowMs, highMs),
    ...[lowMs, highMs],
  );
  return found.map(blockOf);
}
