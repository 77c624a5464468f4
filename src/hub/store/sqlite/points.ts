import { blockOf, WITHIN, withinOf } from "../blocks/blocks.ts";
import { type ChunkAsk, type Found, readMerged, readPieces } from "../blocks/merged.ts";
import { pieceOfRows } from "../blocks/pieces.ts";
import type { Database } from "../database.ts";
import { bareOf, FAR_MS, pointOf } from "../point-rows.ts";
import { mayBeInBlocks, selection, versionsOfPoints } from "../point-selection.ts";
import { pointMethods, WHOLE } from "../points.ts";
import type { Piece, PointRange, PointRow, PointStore, SampleRange, VariableFacts } from "../store.ts";
import type { Statements } from "./database.ts";
import { inSnapshot } from "./driver.ts";
import { readHeads } from "./heads.ts";

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
