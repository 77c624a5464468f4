import type pg from "pg";
import type { Database } from "../database.ts";
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import { selection, versionsOfPoints } from "../point-selection.ts";
import { pointMethods } from "../points.ts";
import type { PointRange, PointRow, PointStore, VariableFacts } from "../store.ts";
import { type Sql, sqlOn } from "./database.ts";
import { readHeads } from "./heads.ts";

const CHUNK = 5_000;
const REMOVED_AT_ONCE = 20_000;

export function createPointStore(pool: pg.Pool, database: Database): PointStore {
  const sql = sqlOn(pool);
  return {
    ...pointMethods(database, { removedAtOnce: REMOVED_AT_ONCE, breathe: async () => {} }),
    read: (variable, range) => readChunks(sql, variable, range),
    heads: (asks, page) => readHeads(sql, asks, page),
  };
}

/**
 * Each chunk continues after the last date, so that no connection and no snapshot is held for a slow reader.
 * The server prepares the next chunk while one is being read.
 */
async function* readChunks(
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
const fetchPacked: Fetch = async (sql, from, values, order, { low, high, limit, offset }) => {
  const text = `SELECT CAST(array_agg(at_ms) AS TEXT) AS dates, CAST(array_agg(value) AS TEXT) AS readings
    FROM (SELECT at_ms, value ${from} ${PAGE} ${order} LIMIT ? OFFSET ?) AS page`;
  const row = await sql.get(text, ...values, low, high, limit, offset);
  const readings = numbersOf(row?.["readings"]);
  return numbersOf(row?.["dates"]).map((atMs, index) => bareOf(atMs, readings[index]));
};

/** `{1.5,2}`; null: of no rows. */
function numbersOf(array: unknown): readonly number[] {
  return array === null ? [] : JSON.parse(`[${String(array).slice(1, -1)}]`);
}

async function versionsOf(sql: Sql, variable: VariableFacts, points: readonly PointRow[], order: "ASC" | "DESC") {
  const { text, values } = versionsOfPoints(variable, points, order);
  return (await sql.all(text, ...values)).map(pointOf);
}
