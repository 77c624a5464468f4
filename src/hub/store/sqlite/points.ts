import { blockOf, WITHIN, withinOf } from "../blocks/blocks.ts";
import { type ChunkAsk, type Found, readMerged, readPieces } from "../blocks/merged.ts";
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
import type { Statements } from "./database.ts";
import { inSnapshot } from "./driver.ts";

/** Variables of one statement, which takes a millisecond or two. */
const AT_ONCE = 500;

/** For the parameter of `idsOf`. */
const ASKED = "json_each(?) AS asked";

const CHUNK = 5_000;
const REMOVED_AT_ONCE = 5_000;

/**
 * Reads are synchronous: after so many rows, which take some milliseconds, the event loop serves other
 * requests.
 */
const BREATH_ROWS = 5_000;
/** Cost of a statement, in rows. */
const STATEMENT_ROWS = 100;
/** Cost of a block, in rows. */
const BLOCK_ROWS = 200;

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

export function createPointStore(tools: Statements, database: Database): PointStore {
  const breathe = createBreath();
  const read: PointStore["read"] = (variable, range) => readChunks(tools, variable, range, breathe);
  return {
    ...pointMethods(database, { removedAtOnce: REMOVED_AT_ONCE, breathe }),
    read,
    pieces: (variable, range) => readAll(tools, variable, range, breathe),
    heads: (asks, page) => readHeads({ tools, breathe, read }, asks, page),
  };
}

/** Each chunk continues after the last date, so that no statement stays open while the event loop runs. */
function readChunks(
  tools: Statements,
  variable: VariableFacts,
  range: PointRange,
  breathe: Breathe,
): AsyncGenerator<readonly PointRow[]> {
  if (!mayBeInBlocks(variable, range.view)) return readRows(tools, variable, range, breathe);
  const { fromMs, lastMs, order, page, labels = true } = range;
  const fetch = chunkFetch(tools, variable.id, labels, breathe);
  return readMerged({ lowMs: fromMs ?? -FAR_MS, highMs: lastMs ?? FAR_MS, order, page }, fetch, false);
}

async function* readAll(
  tools: Statements,
  variable: VariableFacts,
  range: SampleRange,
  breathe: Breathe,
): AsyncGenerator<Piece> {
  if (mayBeInBlocks(variable, range.view)) {
    const { fromMs, lastMs, order } = range;
    const fetch = chunkFetch(tools, variable.id, false, breathe);
    yield* readPieces({ lowMs: fromMs ?? -FAR_MS, highMs: lastMs ?? FAR_MS, order }, fetch, false);
    return;
  }
  const whole = { ...range, page: WHOLE, labels: false };
  for await (const points of readRows(tools, variable, whole, breathe)) {
    const piece = pieceOfRows(points);
    if (piece !== null) yield piece;
  }
}

/** Rows and blocks of one variable. */
export function chunkFetch(
  tools: Statements,
  id: number,
  labels: boolean,
  breathe: Breathe,
): (ask: ChunkAsk) => Promise<Found> {
  const columns = labels ? "*" : "at_ms, value";
  return async ({ lowMs, highMs, order, rowsMax, blocksMax }) => {
    const sql = `SELECT ${columns} FROM point WHERE variable_id = ? AND at_ms BETWEEN ? AND ?
      ORDER BY at_ms ${order} LIMIT ?`;
    const blocksSql = `SELECT * FROM point_block WHERE ${WITHIN} ORDER BY first_ms ${order} LIMIT ?`;
    const found = inSnapshot(tools, () => ({
      rows: labels
        ? tools.all(sql, id, lowMs, highMs, rowsMax).map(pointOf)
        : tools.arrays(sql, id, lowMs, highMs, rowsMax).map(([atMs, value]) => bareOf(atMs, value)),
      blocks: tools.all(blocksSql, ...withinOf(id, lowMs, highMs), blocksMax).map(blockOf),
    }));
    await breathe(found.rows.length + found.blocks.length * BLOCK_ROWS);
    return found;
  };
}

/** Of points that are in no block. */
async function* readRows(
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

function versionsOf(tools: Statements, variable: VariableFacts, points: readonly PointRow[], order: "ASC" | "DESC") {
  const { text, values } = versionsOfPoints(variable, points, order);
  return tools.all(text, ...values).map(pointOf);
}

// Short pages of many variables, mostly their latest points, by one statement for all: a statement for each costs
// four times as much.

interface HeadParts {
  readonly tools: Statements;
  readonly breathe: (rows: number) => Promise<void>;
  /** One variable, from rows and blocks. */
  readonly read: PointStore["read"];
}

async function readHeads(
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
