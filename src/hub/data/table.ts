/** Rows of /data side by side: a row for each date, a column for each variable and aggregate. */
import { AGGREGATE_FACTS, type Aggregated, type DataRow } from "#wire/index.ts";
import type { PointStore, VariableFacts } from "../store/store.ts";
import type { DataRequest } from "./query.ts";
import { readRows } from "./rows.ts";

type ValueColumn = keyof DataRow & `${string}Value`;

export interface TableRow {
  /** With the offset of its zone. */
  readonly date: string;
  /** By variable, then by column; null where the variable has no value. */
  readonly values: readonly (number | null)[];
}

/** The columns of each variable, in their order; null: values as stored. */
export function shownColumns({ granularity, aggregates }: DataRequest): readonly (Aggregated | null)[] {
  return granularity === "Raw" ? [null] : aggregates;
}

export function valueColumn(aggregate: Aggregated | null): ValueColumn {
  return aggregate === null ? "rawValue" : AGGREGATE_FACTS[aggregate].column;
}

/** Rows of one piece; memory holds this, and a chunk of each variable. */
const PIECE_ROWS = 1_000;

interface Cursor {
  readonly chunks: AsyncIterator<readonly DataRow[]>;
  chunk: readonly DataRow[];
  at: number;
  /** Of the next row; infinite after the last. */
  ms: number;
}

/** In order of date; equal moments are one row. */
export async function* tableRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<readonly TableRow[]> {
  const columns = shownColumns(request).map(valueColumn);
  const cursors = await Promise.all(
    variables.map(async (variable): Promise<Cursor> => {
      const chunks = readRows(points, request, [variable])[Symbol.asyncIterator]();
      const cursor = { chunks, chunk: [], at: 0, ms: Number.NEGATIVE_INFINITY };
      await advance(cursor);
      return cursor;
    }),
  );
  try {
    yield* piecesOf(cursors, columns);
  } finally {
    // A reader that leaves ends what is read for it.
    await Promise.all(cursors.map(({ chunks }) => chunks.return?.()));
  }
}

async function* piecesOf(
  cursors: readonly Cursor[],
  columns: readonly ValueColumn[],
): AsyncGenerator<readonly TableRow[]> {
  let piece: TableRow[] = [];
  for (;;) {
    const ms = cursors.reduce((least, cursor) => Math.min(least, cursor.ms), Number.POSITIVE_INFINITY);
    if (ms === Number.POSITIVE_INFINITY) break;
    let date = "";
    const values: (number | null)[] = [];
    for (const cursor of cursors) {
      const row = cursor.ms === ms ? cursor.chunk[cursor.at] : undefined;
      for (const column of columns) values.push(row?.[column] ?? null);
      if (row === undefined) continue;
      date = row.date ?? "";
      cursor.at += 1;
      if (cursor.at < cursor.chunk.length) cursor.ms = msOf(cursor);
      else await advance(cursor);
    }
    piece.push({ date, values });
    if (piece.length < PIECE_ROWS) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

async function advance(cursor: Cursor): Promise<void> {
  for (;;) {
    const { done, value } = await cursor.chunks.next();
    if (done === true) {
      cursor.ms = Number.POSITIVE_INFINITY;
      return;
    }
    if (value.length === 0) continue;
    cursor.chunk = value;
    cursor.at = 0;
    cursor.ms = msOf(cursor);
    return;
  }
}

function msOf({ chunk, at }: Cursor): number {
  return Date.parse(chunk[at]?.date ?? "");
}
