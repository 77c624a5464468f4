import type pg from "pg";
import { blockOf, WITHIN, withinOf } from "../blocks/blocks.ts";
import { type ChunkAsk, chunkOf, type Found, readMerged, readPieces } from "../blocks/merged.ts";
import { type Piece, pieceOfRows } from "../blocks/pieces.ts";
import type { Database } from "../database.ts";
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import {
  type HeadAsk,
  type HeadPage,
  isBehind,
  latestOf,
  mayBeInBlocks,
  type NearestBlock,
  nearestOf,
  rowsOf,
  selection,
  versionsOfPoints,
} from "../point-selection.ts";
import { pointMethods, WHOLE } from "../points.ts";
import type { PointRange, PointRow, SampleRange, VariableFacts } from "../records.ts";
import type { PointStore } from "../store.ts";
import { type Row, type Sql, sqlOn, transact } from "./database.ts";
import { type Month, partitionsOf } from "./partitions.ts";

/** Blocks of one statement. */
const BLOCKS_AT_ONCE = 200;

const lowOf = ({ fromMs }: HeadAsk) => fromMs ?? -FAR_MS;
const highOf = ({ lastMs }: HeadAsk) => lastMs ?? FAR_MS;
const CHUNK = 5_000;
const REMOVED_AT_ONCE = 20_000;

export function createPointStore(pool: pg.Pool, database: Database): PointStore {
  const sql = sqlOn(pool);
  const read: PointStore["read"] = (variable, range) => readChunks(sql, variable, range);
  return {
    ...pointMethods(database, { removedAtOnce: REMOVED_AT_ONCE, breathe: async () => {} }),
    read,
    pieces: (variable, range) => readAll(sql, variable, range),
    heads: (asks, page) => readHeads({ pool, read }, asks, page),
  };
}

/**
 * Each chunk continues after the last date, so that no connection and no snapshot is held for a slow reader.
 * The server prepares the next chunk while one is being read.
 */
function readChunks(sql: Sql, variable: VariableFacts, range: PointRange): AsyncGenerator<readonly PointRow[]> {
  if (!mayBeInBlocks(variable, range.view)) return readRows(sql, variable, range);
  const { fromMs, lastMs, order, page, labels = true } = range;
  const fetch = chunkFetch(sql, variable.id, labels);
  return readMerged({ lowMs: fromMs ?? -FAR_MS, highMs: lastMs ?? FAR_MS, order, page }, fetch, true);
}

async function* readAll(sql: Sql, variable: VariableFacts, range: SampleRange): AsyncGenerator<Piece> {
  if (mayBeInBlocks(variable, range.view)) {
    const { fromMs, lastMs, order } = range;
    const fetch = chunkFetch(sql, variable.id, false);
    yield* readPieces({ lowMs: fromMs ?? -FAR_MS, highMs: lastMs ?? FAR_MS, order }, fetch, true);
    return;
  }
  const whole = { ...range, page: WHOLE, labels: false };
  for await (const points of readRows(sql, variable, whole)) {
    const piece = pieceOfRows(points);
    if (piece !== null) yield piece;
  }
}

/** Rows and blocks of one variable, in one statement, so that both are of one moment. */
export function chunkFetch(sql: Sql, id: number, labels: boolean): (ask: ChunkAsk) => Promise<Found> {
  return async ({ lowMs, highMs, order, rowsMax, blocksMax }) => {
    const page = `FROM point WHERE variable_id = ? ${PAGE} ${order} LIMIT ?`;
    const blocks = `FROM point_block WHERE ${WITHIN} ORDER BY first_ms ${order} LIMIT ?`;
    const text = labels
      ? `(SELECT at_ms, value, version, tags, batch_tags, ${NO_BLOCK} ${page})
        UNION ALL (SELECT NULL, NULL, NULL, NULL, NULL, ${BLOCK} ${blocks})`
      : `(SELECT ${PACKED}, ${NO_BLOCK} FROM (SELECT at_ms, value ${page}) AS page)
        UNION ALL (SELECT NULL, NULL, ${BLOCK} ${blocks})`;
    const found = await sql.all(text, id, lowMs, highMs, rowsMax, ...withinOf(id, lowMs, highMs), blocksMax);
    const rows = found.filter((one) => one["data"] === null);
    const direction = order === "ASC" ? 1 : -1;
    return {
      rows: (labels ? rows.map(pointOf) : rows.flatMap(pointsOf)).sort((a, b) => direction * (a.atMs - b.atMs)),
      blocks: found
        .filter((one) => one["data"] !== null)
        .map(blockOf)
        .sort((a, b) => direction * (a.firstMs - b.firstMs)),
    };
  };
}

const BLOCK = "variable_id, first_ms, last_ms, points, data";
const NO_BLOCK = `CAST(NULL AS BIGINT) AS variable_id, CAST(NULL AS BIGINT) AS first_ms,
  CAST(NULL AS BIGINT) AS last_ms, CAST(NULL AS BIGINT) AS points, CAST(NULL AS BYTEA) AS data`;

/** Of points that are in no block. */
async function* readRows(
  sql: Sql,
  variable: VariableFacts,
  { fromMs, lastMs, order, page, view, labels = true }: PointRange,
): AsyncGenerator<readonly PointRow[]> {
  const { from, values } = selection(variable, view);
  const fetch = labels || view.kind === "all" ? fetchRows : fetchPacked;
  const ask = (bounds: Bounds) => fetch(sql, from, values, order, bounds);
  const end = { low: fromMs ?? -FAR_MS, high: lastMs ?? FAR_MS };
  let left = page.limit ?? Number.POSITIVE_INFINITY;
  let limit = Math.min(CHUNK, left);
  let next = limit > 0 ? ask({ ...end, limit, offset: page.offset }) : null;
  while (next !== null) {
    const rows = await next;
    const last = rows.at(-1);
    if (last === undefined) return;
    left -= rows.length;
    next = null;
    if (rows.length === limit && left > 0) {
      limit = Math.min(CHUNK, left);
      const rest = order === "ASC" ? { ...end, low: last.atMs + 1 } : { ...end, high: last.atMs - 1 };
      next = ask({ ...rest, limit, offset: 0 });
      // A reader that stopped never awaits it.
      next.catch(() => undefined);
    }
    yield view.kind === "all" && variable.isVersioned ? await versionsOf(sql, variable, rows, order) : rows;
  }
}

interface Bounds {
  readonly low: number;
  readonly high: number;
  readonly limit: number;
  readonly offset: number;
}

type Fetch = (
  sql: Sql,
  from: string,
  values: readonly (string | number)[],
  order: "ASC" | "DESC",
  bounds: Bounds,
) => Promise<readonly PointRow[]>;

const PAGE = "AND at_ms BETWEEN ? AND ? ORDER BY at_ms";

const fetchRows: Fetch = async (sql, from, values, order, { low, high, limit, offset }) => {
  const text = `SELECT * ${from} ${PAGE} ${order} LIMIT ? OFFSET ?`;
  return (await sql.all(text, ...values, low, high, limit, offset)).map(pointOf);
};

/**
 * Dates and values only, as two array literals that are nearly JSON: reading thousands of rows from the wire
 * costs five times as much.
 */
const PACKED = "CAST(array_agg(at_ms) AS TEXT) AS dates, CAST(array_agg(value) AS TEXT) AS readings";

const fetchPacked: Fetch = async (sql, from, values, order, { low, high, limit, offset }) => {
  const text = `SELECT ${PACKED} FROM (SELECT at_ms, value ${from} ${PAGE} ${order} LIMIT ? OFFSET ?) AS page`;
  const row = await sql.get(text, ...values, low, high, limit, offset);
  return row === undefined ? [] : pointsOf(row);
};

function pointsOf(packed: Row): readonly PointRow[] {
  const readings = numbersOf(packed["readings"]);
  return numbersOf(packed["dates"]).map((atMs, index) => bareOf(atMs, readings[index]));
}

/** `{1.5,2}`; null: of no rows. */
function numbersOf(array: unknown): readonly number[] {
  return array === null ? [] : JSON.parse(`[${String(array).slice(1, -1)}]`);
}

async function versionsOf(sql: Sql, variable: VariableFacts, points: readonly PointRow[], order: "ASC" | "DESC") {
  const { text, values } = versionsOfPoints(variable, points, order);
  return (await sql.all(text, ...values)).map(pointOf);
}

// Short pages of many variables, mostly their latest points: one statement for all of them per window of
// time, from the requested end, each of some partitions. A variable whose points are found is done; the
// others continue with more partitions each time, so that few statements cover many years.

interface Window {
  readonly fromMs: number;
  /** Included. */
  readonly lastMs: number;
}

interface HeadParts {
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
