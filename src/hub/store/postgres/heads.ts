/**
 * Short pages of many variables, mostly their latest points: one statement for all of them per window of
 * time, from the requested end, each of some partitions. A variable whose points are found is done; the
 * others continue with more partitions each time, so that few statements cover many years.
 */
import type pg from "pg";
import { blockOf } from "../blocks/blocks.ts";
import { chunkOf } from "../blocks/merged.ts";
import { FAR_MS, pointOf } from "../point-rows.ts";
import {
  type HeadAsk,
  type HeadPage,
  isBehind,
  latestOf,
  mayBeInBlocks,
  type NearestBlock,
  nearestOf,
  rowsOf,
} from "../point-selection.ts";
import type { PointRow, PointStore } from "../store.ts";
import { type Sql, transact } from "./database.ts";
import { type Month, partitionsOf } from "./partitions.ts";

interface Window {
  readonly fromMs: number;
  /** Included. */
  readonly lastMs: number;
}

export interface HeadParts {
  readonly pool: pg.Pool;
  /** One variable, from rows and blocks. */
  readonly read: PointStore["read"];
}

export async function readHeads(
  { pool, read }: HeadParts,
  asks: readonly HeadAsk[],
  page: HeadPage,
): Promise<readonly (readonly PointRow[])[]> {
  const { offset, limit } = page.page;
  const found = new Map<number, PointRow[]>(asks.map(({ variable }) => [variable.id, []]));
  const unfilled = await transact(pool, async (sql) => {
    await sql.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const nearest = await nearestBlocks(sql, asks, page);
    const asksOfRows = asks.map((ask) => afterBlock(ask, nearest.get(ask.variable.id), page));
    // Versioned points may be in another table.
    for (const isVersioned of [false, true]) {
      const some = asksOfRows.filter(({ variable }) => variable.isVersioned === isVersioned);
      if (some.length > 0 && limit > 0) await findHeads(sql, some, page, found);
    }
    return await addBlocks(sql, { asks, nearest, page, found });
  });
  const pages = new Map<HeadAsk, readonly PointRow[]>();
  // One by one: the pool has connections for other requests meanwhile.
  for (const ask of unfilled) {
    const all: PointRow[] = [];
    for await (const chunk of read(ask.variable, { ...page, fromMs: ask.fromMs, lastMs: ask.lastMs }))
      all.push(...chunk);
    pages.set(ask, all);
  }
  return asks.map((ask) => pages.get(ask) ?? found.get(ask.variable.id)?.slice(offset, offset + limit) ?? []);
}

/**
 * Leaves out the rows before the last date of a block where one latest point is wanted, since none of them is the
 * latest: their partitions are empty where all points are in blocks.
 */
function afterBlock(ask: HeadAsk, block: NearestBlock | undefined, { order, page }: HeadPage): HeadAsk {
  if (block === undefined || order === "ASC" || page.offset + page.limit !== 1) return ask;
  const isInside = block.lastMs >= lowOf(ask) && block.lastMs <= highOf(ask);
  return isInside ? { ...ask, fromMs: block.lastMs + 1 } : ask;
}

interface BlocksAsk {
  readonly asks: readonly HeadAsk[];
  readonly nearest: ReadonlyMap<number, NearestBlock>;
  readonly page: HeadPage;
  readonly found: Map<number, PointRow[]>;
}

/** Blocks of one statement. */
const BLOCKS_AT_ONCE = 200;

/** Adds to `found` the points of the nearest block of each variable; returns those whose page has not all of them. */
async function addBlocks(sql: Sql, { asks, nearest, page, found }: BlocksAsk): Promise<readonly HeadAsk[]> {
  const { order } = page;
  const rowsMax = page.page.offset + page.page.limit;
  const rowsOfAsk = ({ variable }: HeadAsk) => found.get(variable.id) ?? [];
  const behind = asks.filter((ask) => {
    const block = nearest.get(ask.variable.id);
    if (block === undefined || !isBehind(block, rowsOfAsk(ask), rowsMax, order)) return false;
    const latest = latestOf(block, rowsOfAsk(ask), ask, page);
    if (latest !== null) found.set(ask.variable.id, [latest]);
    return latest === null;
  });
  const unfilled: HeadAsk[] = [];
  for (let from = 0; from < behind.length; from += BLOCKS_AT_ONCE) {
    const some = behind.slice(from, from + BLOCKS_AT_ONCE);
    const ids = some.map(({ variable }) => variable.id);
    const rows = await sql.all(
      `SELECT point_block.* FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS asked(id, first)
        JOIN point_block ON variable_id = id AND first_ms = first`,
      ids,
      ids.map((id) => nearest.get(id)?.firstMs ?? 0),
    );
    const blocks = new Map(rows.map(blockOf).map((block) => [block.variableId, block]));
    for (const ask of some) {
      const block = blocks.get(ask.variable.id);
      const bounds = { lowMs: lowOf(ask), highMs: highOf(ask), order, rowsMax, blocksMax: 1 };
      const { points, rest } = chunkOf(bounds, { rows: rowsOfAsk(ask), blocks: block === undefined ? [] : [block] });
      if (rest !== null && points.length < rowsMax) unfilled.push(ask);
      else found.set(ask.variable.id, points.slice(0, rowsMax));
    }
  }
  return unfilled;
}

async function nearestBlocks(
  sql: Sql,
  asks: readonly HeadAsk[],
  { order, view }: HeadPage,
): Promise<ReadonlyMap<number, NearestBlock>> {
  const some = asks.filter(({ variable }) => mayBeInBlocks(variable, view));
  if (some.length === 0) return new Map();
  const nearest = `SELECT first_ms, last_ms, last_value FROM point_block WHERE variable_id = id AND first_ms <= high
    ${order === "ASC" ? "AND last_ms >= low" : ""} ORDER BY first_ms ${order}`;
  const rows = await sql.all(
    `SELECT id, nearest.*
      FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS asked(id, low, high)
      CROSS JOIN LATERAL (${nearest} LIMIT 1) AS nearest`,
    some.map(({ variable }) => variable.id),
    some.map(lowOf),
    some.map(highOf),
  );
  return new Map(rows.map((row) => [Number(row["id"]), nearestOf(row)]));
}

const lowOf = ({ fromMs }: HeadAsk) => fromMs ?? -FAR_MS;
const highOf = ({ lastMs }: HeadAsk) => lastMs ?? FAR_MS;

/** Adds to `found`; either all variables are versioned or none. */
async function findHeads(
  sql: Sql,
  asks: readonly HeadAsk[],
  { order, page, view }: HeadPage,
  found: ReadonlyMap<number, PointRow[]>,
): Promise<void> {
  const wanted = page.offset + page.limit;
  const isVersioned = asks[0]?.variable.isVersioned === true;
  const { table, condition, values } = rowsOf({ isVersioned }, view);
  const text = `SELECT head.*
    FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS asked(id, low, high)
    CROSS JOIN LATERAL (SELECT * FROM ${table} AS seen
      WHERE variable_id = asked.id${condition} AND at_ms BETWEEN ? AND ?
      AND at_ms BETWEEN asked.low AND asked.high ORDER BY at_ms ${order} LIMIT ?) AS head
      ORDER BY variable_id, at_ms ${order}`;
  const range = { fromMs: Math.min(...asks.map(lowOf)), lastMs: Math.max(...asks.map(highOf)) };
  let left = asks.filter((ask) => lowOf(ask) <= highOf(ask));
  for (const { fromMs, lastMs } of windowsOf(await partitionsOf(sql, table), range, order)) {
    // Windows of the latest points go back in time.
    if (order === "DESC") left = left.filter((ask) => lowOf(ask) <= lastMs);
    if (left.length === 0) return;
    const arrays = [left.map(({ variable }) => variable.id), left.map(lowOf), left.map(highOf)];
    const rows = await sql.all(text, ...arrays, ...values, fromMs, lastMs, wanted);
    for (const row of rows) found.get(Number(row["variable_id"]))?.push(pointOf(row));
    left = left.filter(({ variable }) => (found.get(variable.id)?.length ?? 0) < wanted);
  }
}

/**
 * Windows begin where partitions begin, without gaps between them, since a partition may be created at any
 * moment.
 */
export function windowsOf(
  partitions: readonly Month[],
  { fromMs, lastMs }: Window,
  order: "ASC" | "DESC",
): readonly Window[] {
  if (fromMs > lastMs) return [];
  const begins = partitions.map((one) => one.fromMs).filter((ms) => ms > fromMs && ms <= lastMs);
  const parts = [fromMs, ...begins].map((begin, index) => ({
    fromMs: begin,
    lastMs: index < begins.length ? (begins[index] ?? lastMs + 1) - 1 : lastMs,
  }));
  if (order === "DESC") parts.reverse();
  const windows: Window[] = [];
  for (let first = 0, size = 1; first < parts.length; first += size, size *= 2) {
    const joined = parts.slice(first, first + size);
    windows.push({
      fromMs: Math.min(...joined.map((part) => part.fromMs)),
      lastMs: Math.max(...joined.map((part) => part.lastMs)),
    });
  }
  return windows;
}
