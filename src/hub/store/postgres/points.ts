import type pg from "pg";
import { FAR_MS, pointOf } from "../point-rows.ts";
import { selection } from "../point-selection.ts";
import type { Holding, PointRange, PointRow, PointStore, VariableFacts } from "../store.ts";
import { factsOf, number, VARIABLE_FACTS } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type Row, type Sql, sqlOn, transact } from "./database.ts";
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

/** Each chunk continues after the last date, so that no connection and no snapshot is held for a reader who is slow. */
async function* readChunks(
  sql: Sql,
  variable: VariableFacts,
  { fromMs, lastMs, order, page, view }: PointRange,
): AsyncGenerator<readonly PointRow[]> {
  const { from, values } = selection(variable, view);
  const text = `SELECT * ${from} AND at_ms BETWEEN ? AND ? ORDER BY at_ms ${order} LIMIT ? OFFSET ?`;
  let low = fromMs ?? -FAR_MS;
  let high = lastMs ?? FAR_MS;
  let left = page.limit ?? Number.POSITIVE_INFINITY;
  let offset = page.offset;
  while (left > 0) {
    const limit = Math.min(CHUNK, left);
    const rows = await sql.all(text, ...values, low, high, limit, offset);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield view.kind === "all" && variable.isVersioned
      ? await versionsOf(sql, variable, rows, order)
      : rows.map(pointOf);
    if (rows.length < limit) return;
    left -= rows.length;
    offset = 0;
    if (order === "ASC") low = Number(last["at_ms"]) + 1;
    else high = Number(last["at_ms"]) - 1;
  }
}

async function versionsOf(sql: Sql, variable: VariableFacts, points: readonly Row[], order: "ASC" | "DESC") {
  const dates = points.map((point) => Number(point["at_ms"]));
  const [first = 0, last = 0] = [dates[0], dates.at(-1)];
  const text = `SELECT * FROM point_version WHERE variable_id = ? AND at_ms BETWEEN ? AND ? ORDER BY at_ms ${order}, version_us`;
  const rows = await sql.all(text, variable.id, Math.min(first, last), Math.max(first, last));
  return rows.map(pointOf);
}
