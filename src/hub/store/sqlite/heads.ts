/**
 * Short pages of many variables, mostly their latest points, by one statement for all: a statement for each costs
 * four times as much.
 */
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
} from "../point-selection.ts";
import type { PointRow, PointStore } from "../store.ts";
import type { Statements } from "./database.ts";
import { inSnapshot } from "./driver.ts";

/** Variables of one statement, which takes a millisecond or two. */
const AT_ONCE = 500;

export interface HeadParts {
  readonly tools: Statements;
  readonly breathe: (rows: number) => Promise<void>;
  /** One variable, from rows and blocks. */
  readonly read: PointStore["read"];
}

export async function readHeads(
  parts: HeadParts,
  asks: readonly HeadAsk[],
  page: HeadPage,
): Promise<readonly (readonly PointRow[])[]> {
  const found = new Map<number, PointRow[]>(asks.map(({ variable }) => [variable.id, []]));
  // Versioned points may be in another table. Bounds differ by the zones of variables, which are few.
  const alike = ({ variable, fromMs, lastMs }: HeadAsk) => `${variable.isVersioned} ${fromMs} ${lastMs}`;
  for (const some of Map.groupBy(asks, alike).values())
    for (let first = 0; first < some.length; first += AT_ONCE)
      await findSome(parts, some.slice(first, first + AT_ONCE), page, found);
  return asks.map(({ variable }) => found.get(variable.id) ?? []);
}

/** Fills `found`. All are of one period, and either all variables are versioned or none. */
async function findSome(
  { tools, breathe, read }: HeadParts,
  asks: readonly HeadAsk[],
  page: HeadPage,
  found: Map<number, PointRow[]>,
): Promise<void> {
  const { rows, blocks } = inSnapshot(tools, () => ({
    rows: findHeads(tools, asks, page, found),
    blocks: nearestBlocks(tools, asks, page),
  }));
  await breathe(rows);
  const direction = page.order === "ASC" ? 1 : -1;
  for (const ask of asks) {
    const { variable, fromMs, lastMs } = ask;
    const heads = found.get(variable.id) ?? [];
    heads.sort((a, b) => direction * (a.atMs - b.atMs));
    const block = blocks.get(variable.id);
    if (block === undefined || !isBehind(block, heads, page.page.limit, page.order)) continue;
    const latest = latestOf(block, heads, ask, page);
    if (latest !== null) {
      found.set(variable.id, [latest]);
      continue;
    }
    const all: PointRow[] = [];
    for await (const chunk of read(variable, { ...page, fromMs, lastMs })) all.push(...chunk);
    found.set(variable.id, all);
  }
}

function nearestBlocks(
  tools: Statements,
  asks: readonly HeadAsk[],
  { order, view }: HeadPage,
): ReadonlyMap<number, NearestBlock> {
  const [ask] = asks;
  if (ask === undefined || !mayBeInBlocks(ask.variable, view)) return new Map();
  const { low, high } = boundsOf(ask);
  const [nearest, bounds] =
    order === "ASC"
      ? [
          "min(first_ms) FROM point_block WHERE variable_id = asked.value AND first_ms <= ? AND last_ms >= ?",
          [high, low],
        ]
      : ["max(first_ms) FROM point_block WHERE variable_id = asked.value AND first_ms <= ?", [high]];
  const sql = `SELECT variable_id, first_ms, last_ms, last_value FROM ${ASKED}
    CROSS JOIN point_block ON variable_id = asked.value AND first_ms = (SELECT ${nearest})`;
  const rows = tools.all(sql, idsOf(asks), ...bounds);
  return new Map(rows.map((row) => [Number(row["variable_id"]), nearestOf(row)]));
}

/** For the parameter of `idsOf`. */
const ASKED = "json_each(?) AS asked";

function idsOf(asks: readonly HeadAsk[]): string {
  return JSON.stringify(asks.map(({ variable }) => variable.id));
}

/** Both ends are included. */
function boundsOf({ fromMs, lastMs }: HeadAsk): { readonly low: number; readonly high: number } {
  return { low: fromMs ?? -FAR_MS, high: lastMs ?? FAR_MS };
}

/** Adds to `found`, in no order; returns the number of rows. As `findSome`. */
function findHeads(
  tools: Statements,
  asks: readonly HeadAsk[],
  { order, page, view, labels = true }: HeadPage,
  found: ReadonlyMap<number, PointRow[]>,
): number {
  const [ask] = asks;
  if (ask === undefined) return 0;
  const { low, high } = boundsOf(ask);
  const { table, condition, values } = rowsOf(ask.variable, view);
  // The inner `seen` hides the outer one, so that the condition holds for both.
  const sql = `SELECT ${labels ? "seen.*" : "variable_id, at_ms, seen.value"}
    FROM ${ASKED} CROSS JOIN ${table} AS seen
    WHERE variable_id = asked.value${condition} AND at_ms IN (SELECT at_ms FROM ${table} AS seen
      WHERE variable_id = asked.value${condition} AND at_ms BETWEEN ? AND ?
      ORDER BY at_ms ${order} LIMIT ? OFFSET ?)`;
  const given = [idsOf(asks), ...values, ...values, low, high, page.limit, page.offset];
  if (labels) {
    const rows = tools.all(sql, ...given);
    for (const row of rows) found.get(Number(row["variable_id"]))?.push(pointOf(row));
    return rows.length;
  }
  const rows = tools.arrays(sql, ...given);
  for (const [id, atMs, value] of rows) found.get(Number(id))?.push(bareOf(atMs, value));
  return rows.length;
}
