/** Puts the readings of one variable into its blocks, one statement after the other. */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import { type Row, rows, type Steps } from "../database.ts";
import { truth } from "../structure-rows.ts";
import { dataOf, putBlock, removeBlock, replaceBlock } from "./blocks.ts";
import { removeRows } from "./pack.ts";
import { type BlockKey, neededBlocks, type Part, partsOf, type Segment, slicesOf } from "./parts.ts";
import { type Around, type Effect, joinedEffects, neededRows, type Plan, planOf, type StoredRow } from "./plan.ts";

/** The block before a period, and all that begin in it. */
const KEYS = `SELECT variable_id, first_ms, last_ms, points FROM point_block WHERE variable_id = ? AND first_ms BETWEEN
  coalesce((SELECT max(first_ms) FROM point_block WHERE variable_id = ? AND first_ms <= ?), ?) AND ? ORDER BY first_ms`;
const ROWS = `SELECT at_ms, value, origin_id, version IS NULL AND tags IS NULL AND batch_tags IS NULL AS bare FROM point
  WHERE variable_id = ? AND at_ms BETWEEN ? AND ? ORDER BY at_ms DESC LIMIT ?`;

export function keyOf(found: Row): BlockKey {
  return {
    variableId: Number(found["variable_id"]),
    firstMs: Number(found["first_ms"]),
    lastMs: Number(found["last_ms"]),
    points: Number(found["points"]),
  };
}

export function storedRowOf(found: Row): StoredRow {
  return {
    atMs: Number(found["at_ms"]),
    value: Number(found["value"]),
    origin: Number(found["origin_id"]),
    isBare: truth(found["bare"]),
  };
}

/** The block before the readings, and all that begin among them, in order of date. */
export function* readKeys({ variable: { id }, firstMs, lastMs }: Segment): Steps<readonly BlockKey[]> {
  return (yield* rows(KEYS, id, id, firstMs, firstMs, lastMs)).map(keyOf);
}

/** Within a transaction; the readings have no labels. */
export function* storeSegment(readings: ReadingColumns, segment: Segment, numbers: FirstNumbers): Steps<Effect> {
  const parts = partsOf(readings, segment, yield* readKeys(segment));
  const effects: Effect[] = [];
  for (const slice of slicesOf(parts)) {
    const around = yield* readAround(segment.variable.id, slice);
    effects.push(yield* applyPlan(segment.variable.id, planOf(readings, segment, numbers, around)));
  }
  return joinedEffects(effects);
}

/** An effect, and the newest block then; null: not known. */
export interface EndEffect {
  readonly effect: Effect;
  readonly newest: BlockKey | null;
}

/**
 * The same for readings later than all that the variable has, whose newest block is known; null: it has none. A
 * statement to read that block, and one to write it.
 */
export function* storeAtEnd(
  readings: ReadingColumns,
  segment: Segment,
  numbers: FirstNumbers,
  newest: BlockKey | null,
): Steps<EndEffect> {
  const parts = partsOf(readings, segment, newest === null ? [] : [newest]);
  const data = yield* readBlocks(parts);
  const fromMs = neededRows(parts)?.lowMs ?? Number.POSITIVE_INFINITY;
  const plan = planOf(readings, segment, numbers, { parts, data, rows: [], fromMs });
  const effect = yield* applyPlan(segment.variable.id, plan);
  const last = plan.added.at(-1);
  if (last === undefined) return { effect, newest: null };
  // Without its bytes, which would be kept in memory.
  const { variableId, firstMs, lastMs, points } = last;
  return { effect, newest: { variableId, firstMs, lastMs, points } };
}

function* applyPlan(id: number, { removed, removedRows, added, ...effect }: Plan): Steps<Effect> {
  const isAdded = (key: BlockKey) => added.some(({ firstMs }) => firstMs === key.firstMs);
  const isRemoved = (block: BlockKey) => removed.some(({ firstMs }) => firstMs === block.firstMs);
  for (const key of removed) if (!isAdded(key)) yield* removeBlock(key);
  for (const span of removedRows) yield* removeRows(id, span);
  for (const block of added) yield* isRemoved(block) ? replaceBlock(block) : putBlock(block);
  return effect;
}

function* readAround(id: number, parts: readonly Part[]): Steps<Around> {
  const data = yield* readBlocks(parts);
  const needed = neededRows(parts);
  if (needed === null) return { parts, data, rows: [], fromMs: Number.POSITIVE_INFINITY };
  const newest = (yield* rows(ROWS, id, needed.lowMs, needed.highMs, needed.rowsMax)).map(storedRowOf);
  const oldest = newest.length < needed.rowsMax ? undefined : newest.at(-1);
  return { parts, data, rows: newest.toReversed(), fromMs: oldest?.atMs ?? needed.lowMs };
}

function* readBlocks(parts: readonly Part[]): Steps<ReadonlyMap<number, Uint8Array>> {
  const data = new Map<number, Uint8Array>();
  for (const key of neededBlocks(parts)) data.set(key.firstMs, yield* dataOf(key));
  return data;
}
