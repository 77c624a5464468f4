/** Puts the readings of one variable into its blocks, one statement after the other. */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import { type Row, row, rows, type Steps } from "../database.ts";
import { truth } from "../structure-rows.ts";
import { putBlock, removeBlock } from "./blocks.ts";
import type { Segment } from "./new-points.ts";
import { removeRows } from "./pack.ts";
import {
  type Around,
  type BlockKey,
  neededBlocks,
  neededRows,
  type Plan,
  partsOf,
  planOf,
  type StoredRow,
} from "./plan.ts";

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
    origin: Number(found["origin_id"] ?? 0),
    isBare: truth(found["bare"]),
  };
}

/** Within a transaction; the readings have no labels. */
export function* storeSegment(readings: ReadingColumns, segment: Segment, numbers: FirstNumbers): Steps<Plan> {
  const plan = planOf(readings, segment, numbers, yield* readAround(readings, segment));
  const { id } = segment.variable;
  const added = new Set(plan.added.map(({ firstMs }) => firstMs));
  for (const key of plan.removed) if (!added.has(key.firstMs)) yield* removeBlock(key);
  for (const span of plan.removedRows) yield* removeRows(id, span);
  for (const block of plan.added) yield* putBlock(block);
  return plan;
}

function* readAround(readings: ReadingColumns, segment: Segment): Steps<Around> {
  const { firstMs, lastMs, variable } = segment;
  const { id } = variable;
  const keys = (yield* rows(KEYS, id, id, firstMs, firstMs, lastMs)).map(keyOf);
  const parts = partsOf(readings, segment, keys);
  const data = new Map<number, Uint8Array>();
  for (const key of neededBlocks(parts)) {
    const found = yield* row("SELECT data FROM point_block WHERE variable_id = ? AND first_ms = ?", id, key.firstMs);
    data.set(key.firstMs, found?.["data"] as Uint8Array);
  }
  const needed = neededRows(parts);
  if (needed === null) return { parts, data, rows: [], fromMs: firstMs };
  const newest = (yield* rows(ROWS, id, needed.lowMs, needed.highMs, needed.rowsMax)).map(storedRowOf);
  const oldest = newest.length < needed.rowsMax ? undefined : newest.at(-1);
  return { parts, data, rows: newest.toReversed(), fromMs: oldest?.atMs ?? needed.lowMs };
}
