import type pg from "pg";
import { blockOf, WITHIN, withinOf } from "../blocks/blocks.ts";
import { type ChunkAsk, type Found, readMerged, readPieces } from "../blocks/merged.ts";
import { pieceOfRows } from "../blocks/pieces.ts";
import type { Database } from "../database.ts";
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import { mayBeInBlocks, selection, versionsOfPoints } from "../point-selection.ts";
import { pointMethods, WHOLE } from "../points.ts";
import type { Piece, PointRange, PointRow, PointStore, SampleRange, VariableFacts } from "../store.ts";
import { type Row, type Sql, sqlOn } from "./database.ts";
import { readHeads } from "./heads.ts";

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
