import type { DatabaseSync } from "node:sqlite";
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import { selection, versionsOfPoints } from "../point-selection.ts";
import type { Holding, PointRange, PointRow, PointStore, VariableFacts } from "../store.ts";
import { factsOf, number, VARIABLE_FACTS } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type Statements, statements, write } from "./database.ts";
import { bound, SQLITE } from "./dialect.ts";

const CHUNK = 5_000;

/** Reads are synchronous: others have their turn at the event loop after so many rows, which take some milliseconds. */
const BREATH_ROWS = 5_000;
/** What a statement costs, in rows. */
const STATEMENT_ROWS = 100;

type Breathe = (rows: number) => Promise<void>;

function createBreath(): Breathe {
  let breathless = 0;
  return async (rows) => {
    breathless += STATEMENT_ROWS + rows;
    if (breathless < BREATH_ROWS) return;
    breathless = 0;
    await new Promise((resolve) => setImmediate(resolve));
  };
}

export function createPointStore(database: DatabaseSync): PointStore {
  const tools = statements(database);
  const breathe = createBreath();
  return {
    ...removal(database, tools, breathe),
    async select(accountId, filter) {
      const where = new Where(SQLITE)
        .among("variable.id", filter.ids)
        .among("variable.source_id", filter.sourceIds)
        .among("variable.variable_type_id", filter.variableTypeIds)
        .sharing("variable.tags", filter.tags);
      if (accountId !== null) where.equal("variable.account_id", accountId);
      const sql = `SELECT ${VARIABLE_FACTS} ${where.sql} ORDER BY variable.id`;
      return tools.all(sql, ...where.values.map(bound)).map(factsOf);
    },
    read: (variable, range) => readChunks(tools, variable, range, breathe),
    async heads(asks, page) {
      const heads: (readonly PointRow[])[] = [];
      for (const { variable, ...period } of asks) {
        const chunks = readChunks(tools, variable, { ...period, ...page }, breathe);
        heads.push((await Array.fromAsync(chunks)).flat());
      }
      return heads;
    },
    async count(variable, range) {
      const { from, values } = selection(variable, range.view);
      const sql = `SELECT count(*) AS total ${from} AND at_ms BETWEEN ? AND ?`;
      const row = tools.get(sql, ...values, range.fromMs ?? -FAR_MS, range.lastMs ?? FAR_MS);
      const total = Number(row?.["total"]);
      await breathe(total);
      return total;
    },
  };
}

/** Points that one transaction removes: pushes wait for it no longer than a moment. */
const REMOVED_AT_ONCE = 5_000;

function removal(
  database: DatabaseSync,
  tools: Statements,
  breathe: Breathe,
): Pick<PointStore, "holding" | "remove"> {
  const period = "variable_id = ? AND at_ms >= ? AND at_ms < ?";
  const holding = (id: number, fromMs: number, toMs: number): Holding => {
    const held = tools.get(
      `SELECT count(*) AS points, min(at_ms) AS first, max(at_ms) AS last FROM point WHERE ${period}`,
      id,
      fromMs,
      toMs,
    );
    const versions = tools.get(
      `SELECT count(*) AS total FROM point_version WHERE ${period}`,
      id,
      fromMs,
      toMs,
    );
    return {
      points: Number(held?.["points"]),
      versions: Number(versions?.["total"]),
      firstMs: number(held?.["first"]),
      lastMs: number(held?.["last"]),
    };
  };
  return {
    async holding(id, fromMs, toMs) {
      const held = holding(id, fromMs ?? -FAR_MS, toMs ?? FAR_MS);
      await breathe(held.points + held.versions);
      return held;
    },
    async remove(id, fromMs, toMs) {
      const all = { points: 0, versions: 0, firstMs: null as number | null, lastMs: null as number | null };
      for (let low = fromMs ?? -FAR_MS; ; ) {
        const part = await write(database, () => {
          const end = tools.get(
            `SELECT at_ms FROM point WHERE ${period} ORDER BY at_ms LIMIT 1 OFFSET ?`,
            id,
            low,
            toMs ?? FAR_MS,
            REMOVED_AT_ONCE,
          );
          const high = end === undefined ? (toMs ?? FAR_MS) : Number(end["at_ms"]);
          const held = holding(id, low, high);
          for (const table of ["point_version", "point"])
            tools.run(`DELETE FROM ${table} WHERE ${period}`, id, low, high);
          return { held, next: end === undefined ? null : high };
        });
        all.points += part.held.points;
        all.versions += part.held.versions;
        all.firstMs ??= part.held.firstMs;
        all.lastMs = part.held.lastMs ?? all.lastMs;
        if (part.next === null) return all;
        low = part.next;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

/** Each chunk continues after the last date, so that no statement stays open while the event loop goes on. */
async function* readChunks(
  tools: Statements,
  variable: VariableFacts,
  { fromMs, lastMs, order, page, view, labels = true }: PointRange,
  breathe: Breathe,
): AsyncGenerator<readonly PointRow[]> {
  const { from, values } = selection(variable, view);
  const columns = labels || view.kind === "all" ? "*" : "at_ms, value";
  const fetch = (...bounds: number[]): readonly PointRow[] =>
    columns === "*"
      ? tools.all(sql, ...values, ...bounds).map(pointOf)
      : tools.arrays(sql, ...values, ...bounds).map(([atMs, value]) => bareOf(atMs, value));
  const sql = `SELECT ${columns} ${from} AND at_ms BETWEEN ? AND ? ORDER BY at_ms ${order} LIMIT ? OFFSET ?`;
  let low = fromMs ?? -FAR_MS;
  let high = lastMs ?? FAR_MS;
  let left = page.limit ?? Number.POSITIVE_INFINITY;
  let offset = page.offset;
  while (left > 0) {
    const limit = Math.min(CHUNK, left);
    const rows = fetch(low, high, limit, offset);
    await breathe(rows.length);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield view.kind === "all" && variable.isVersioned ? versionsOf(tools, variable, rows, order) : rows;
    if (rows.length < limit) return;
    left -= rows.length;
    offset = 0;
    if (order === "ASC") low = last.atMs + 1;
    else high = last.atMs - 1;
  }
}

function versionsOf(
  tools: Statements,
  variable: VariableFacts,
  points: readonly PointRow[],
  order: "ASC" | "DESC",
) {
  const { text, values } = versionsOfPoints(variable, points, order);
  return tools.all(text, ...values).map(pointOf);
}
