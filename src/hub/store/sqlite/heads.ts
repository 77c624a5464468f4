/**
 * Short pages of many variables, mostly their latest points, by one statement for all: a statement for each costs
 * four times as much.
 */
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import { type HeadAsk, type HeadPage, rowsOf } from "../point-selection.ts";
import type { PointRow } from "../store.ts";
import type { Statements } from "./database.ts";

/** Variables of one statement, which takes a millisecond or two. */
const AT_ONCE = 500;

export async function readHeads(
  tools: Statements,
  asks: readonly HeadAsk[],
  page: HeadPage,
  breathe: (rows: number) => Promise<void>,
): Promise<readonly (readonly PointRow[])[]> {
  const found = new Map<number, PointRow[]>(asks.map(({ variable }) => [variable.id, []]));
  // Versioned points may be in another table.
  for (const some of Map.groupBy(asks, ({ variable }) => variable.isVersioned).values())
    for (let first = 0; first < some.length; first += AT_ONCE)
      await breathe(findHeads(tools, some.slice(first, first + AT_ONCE), page, found));
  const direction = page.order === "ASC" ? 1 : -1;
  for (const points of found.values()) points.sort((a, b) => direction * (a.atMs - b.atMs));
  return asks.map(({ variable }) => found.get(variable.id) ?? []);
}

/** Adds to `found`, in no order; returns the number of rows. Either all variables are versioned or none. */
function findHeads(
  tools: Statements,
  asks: readonly HeadAsk[],
  { order, page, view, labels = true }: HeadPage,
  found: ReadonlyMap<number, PointRow[]>,
): number {
  const isVersioned = asks[0]?.variable.isVersioned === true;
  const { table, condition, values } = rowsOf({ isVersioned }, view);
  // The inner `seen` hides the outer one, so that the condition holds for both.
  const sql = `WITH asked (id, low, high) AS MATERIALIZED
      (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))
    SELECT ${labels ? "seen.*" : "variable_id, at_ms, value"} FROM asked CROSS JOIN ${table} AS seen
    WHERE variable_id = asked.id${condition} AND at_ms IN (SELECT at_ms FROM ${table} AS seen
      WHERE variable_id = asked.id${condition} AND at_ms BETWEEN asked.low AND asked.high
      ORDER BY at_ms ${order} LIMIT ? OFFSET ?)`;
  const bounds = asks.map(({ variable, fromMs, lastMs }) => [variable.id, fromMs ?? -FAR_MS, lastMs ?? FAR_MS]);
  const given = [JSON.stringify(bounds), ...values, ...values, page.limit, page.offset];
  if (labels) {
    const rows = tools.all(sql, ...given);
    for (const row of rows) found.get(Number(row["variable_id"]))?.push(pointOf(row));
    return rows.length;
  }
  const rows = tools.arrays(sql, ...given);
  for (const [id, atMs, value] of rows) found.get(Number(id))?.push(bareOf(atMs, value));
  return rows.length;
}
