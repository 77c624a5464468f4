import type pg from "pg";
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import { selection, versionsOfPoints } from "../point-selection.ts";
import type { Holding, PointRange, PointRow, PointStore, VariableFacts } from "../store.ts";
import { factsOf, number, VARIABLE_FACTS } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type Sql, sqlOn, transact } from "./database.ts";
import { POSTGRES } from "./dialect.ts";
import { readHeads } from "./heads.ts";
import { holdLane } from "./lanes.ts";

const CHUNK = 5_000;

export function createPointStore(pool: pg.Pool): PointStore {
  const sql = sqlOn(pool);
  return {
    ...removal(pool),
    async select(accountId, filter) {
      const where = new Where(POSTGRES)
        .among("variable.id", filter.ids)
        .among("variable.source_id", filter.sourceIds)
        .among("variable.variable_type_id", filter.variableTypeIds)
        .sharing("variable.tags", filter.tags);
      if (accountId !== null) where.equal("variable.account_id", accountId);
      const rows = await sql.all(
        `SELECT ${VARIABLE_FACTS} ${where.sql} ORDER BY variable.id`,
        ...where.values,
      );
      return rows.map(factsOf);
    },
    read: (variable, range) => readChunks(sql, variable, range),
    heads: (asks, page) => readHeads(sql, asks, page),
    async count(variable, range) {
      const { from, values } = selection(variable, range.view);
      const text = `SELECT count(*) AS total ${from} AND at_ms BETWEEN ? AND ?`;
      const row = await sql.get(text, ...values, range.fromMs ?? -FAR_MS, range.lastMs ?? FAR_MS);
      return Number(row?.["total"]);
    },
  };
}

/** Points that one transaction removes: pushes wait for it no longer than a moment. */
const REMOVED_AT_ONCE = 20_000;
const PERIOD = "variable_id = ? AND at_ms >= ? AND at_ms < ?";

function removal(pool: pg.Pool): Pick<PointStore, "holding" | "remove"> {
  return {
    holding: (id, fromMs, toMs) => holdingOf(sqlOn(pool), id, fromMs ?? -FAR_MS, toMs ?? FAR_MS),
    async remove(id, fromMs, toMs) {
      const all = { points: 0, versions: 0, firstMs: null as number | null, lastMs: null as number | null };
      for (let low = fromMs ?? -FAR_MS; ; ) {
        const part = await transact(pool, (sql) => removePart(sql, id, low, toMs ?? FAR_MS));
        all.points += part.held.points;
        all.versions += part.held.versions;
        all.firstMs ??= part.held.firstMs;
        all.lastMs = part.held.lastMs ?? all.lastMs;
        if (part.nextMs === null) return all;
        low = part.nextMs;
      }
    },
  };
}

/** `nextMs`: where the next part begins; null: this was the last. */
async function removePart(
  sql: Sql,
  id: number,
  lowMs: number,
  endMs: number,
): Promise<{ held: Holding; nextMs: number | null }> {
  const variable = await sql.get("SELECT account_id FROM variable WHERE id = ?", id);
  if (variable !== undefined) await holdLane(sql, Number(variable["account_id"]));
  const end = await sql.get(
    `SELECT at_ms FROM point WHERE ${PERIOD} ORDER BY at_ms LIMIT 1 OFFSET ?`,
    id,
    lowMs,
    endMs,
    REMOVED_AT_ONCE,
  );
  const highMs = end === undefined ? endMs : Number(end["at_ms"]);
  const held = await holdingOf(sql, id, lowMs, highMs);
  for (const table of ["point_version", "point"])
    await sql.run(`DELETE FROM ${table} WHERE ${PERIOD}`, id, lowMs, highMs);
  return { held, nextMs: end === undefined ? null : highMs };
}

async function holdingOf({ get }: Sql, id: number, fromMs: number, toMs: number): Promise<Holding> {
  const held = await get(
    `SELECT count(*) AS points, min(at_ms) AS first, max(at_ms) AS last FROM point WHERE ${PERIOD}`,
    id,
    fromMs,
    toMs,
  );
  const versions = await get(`SELECT count(*) AS total FROM point_version WHERE ${PERIOD}`, id, fromMs, toMs);
  return {
    points: Number(held?.["points"]),
    versions: Number(versions?.["total"]),
    firstMs: number(held?.["first"]),
    lastMs: number(held?.["last"]),
  };
}

/**
 * Each chunk continues after the last date, so that no connection and no snapshot is held for a reader who is slow. The server is at the
 * next one while one is being read.
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
      // A reader who goes away does not come for it.
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

/** Dates and values alone, as two texts that are JSON in other brackets: reading thousands of rows from the wire costs five times as much. */
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

async function versionsOf(
  sql: Sql,
  variable: VariableFacts,
  points: readonly PointRow[],
  order: "ASC" | "DESC",
) {
  const { text, values } = versionsOfPoints(variable, points, order);
  return (await sql.all(text, ...values)).map(pointOf);
}
