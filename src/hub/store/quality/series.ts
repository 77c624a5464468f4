/** Reads of whole series for reports of their quality, in a thread and on a connection of their own. */
import { blockOf, blocksWithin, heldInBlocks, partOf, WITHIN, withinOf } from "../blocks/blocks.ts";
import type { Samples } from "../blocks/pieces.ts";
import { type Database, row, rows, type Steps } from "../database.ts";
import { FAR_MS } from "../point-rows.ts";

/** Milliseconds since 1970 in UTC; the end is excluded. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Dates `phaseMs` + k × `stepMs`. */
export interface EvenDates {
  readonly phaseMs: number;
  readonly stepMs: number;
}

interface Revisions {
  /** Versions that replaced an earlier one of the same date. */
  readonly replaced: number;
  /** Replacing versions with the value of the version before. */
  readonly repeated: number;
}

export interface SeriesStore {
  /** Null without points. */
  firstMs(variableId: number): Promise<number | null>;
  /** The first point of a span; null where it is empty. */
  nextMs(variableId: number, span: Span): Promise<number | null>;
  /** Dates of the newest points before a moment, ascending. */
  newest(variableId: number, beforeMs: number, count: number): Promise<readonly number[]>;
  count(variableId: number, span: Span): Promise<number>;
  /** Number of points, and of those that are exactly at one of the dates. */
  tally(variableId: number, span: Span, dates: EvenDates): Promise<{ readonly points: number; readonly even: number }>;
  /** Memory holds one chunk. */
  read(variableId: number, span: Span): AsyncIterable<Samples>;
  revisions(variableId: number, span: Span): Promise<Revisions>;
}

export type OpenSeries = SeriesStore & { close(): Promise<void> };

const SPAN = "variable_id = ? AND at_ms >= ? AND at_ms < ?";

/** Reads whose statements are the same in both databases. */
export function seriesMethods({ ask, snapshot }: Database): Omit<SeriesStore, "read"> {
  return {
    firstMs: (id) => snapshot(() => firstOf(id, { fromMs: -FAR_MS, untilMs: FAR_MS })),
    nextMs: (id, span) => snapshot(() => firstOf(id, span)),
    newest: (id, beforeMs, count) => snapshot(() => newestOf(id, beforeMs, count)),
    count: (id, { fromMs, untilMs }) =>
      snapshot(function* () {
        const found = yield* row(`SELECT count(*) AS points FROM point WHERE ${SPAN}`, id, fromMs, untilMs);
        return Number(found?.["points"]) + (yield* heldInBlocks(id, fromMs, untilMs - 1)).points;
      }),
    tally: (id, span, dates) => snapshot(() => tallyOf(id, span, dates)),
    async revisions(id, { fromMs, untilMs }) {
      const sql = `SELECT coalesce(sum(CASE WHEN at_ms = at_before THEN 1 ELSE 0 END), 0) AS replaced,
          coalesce(sum(CASE WHEN at_ms = at_before AND value = value_before THEN 1 ELSE 0 END), 0) AS repeated
        FROM (SELECT at_ms, value, lag(at_ms) OVER earlier AS at_before, lag(value) OVER earlier AS value_before
          FROM point_version WHERE ${SPAN} WINDOW earlier AS (ORDER BY at_ms, version_us)) AS version`;
      const found = await ask(() => row(sql, id, fromMs, untilMs));
      return { replaced: Number(found?.["replaced"]), repeated: Number(found?.["repeated"]) };
    },
  };
}

function* firstOf(id: number, { fromMs, untilMs }: Span): Steps<number | null> {
  const found = yield* row(`SELECT at_ms FROM point WHERE ${SPAN} ORDER BY at_ms LIMIT 1`, id, fromMs, untilMs);
  const sql = `SELECT * FROM point_block WHERE ${WITHIN} ORDER BY first_ms LIMIT 1`;
  const block = yield* row(sql, ...withinOf(id, fromMs, untilMs - 1));
  // The span may be between two dates of the block.
  const dates = block === undefined ? [] : [...partOf(blockOf(block), fromMs, untilMs - 1).atMs.subarray(0, 1)];
  if (found !== undefined) dates.push(Number(found["at_ms"]));
  return dates.length === 0 ? null : Math.min(...dates);
}

function* newestOf(id: number, beforeMs: number, count: number): Steps<readonly number[]> {
  const sql = "SELECT at_ms FROM point WHERE variable_id = ? AND at_ms < ? ORDER BY at_ms DESC LIMIT ?";
  const found = (yield* rows(sql, id, beforeMs, count)).map((one) => Number(one["at_ms"]));
  const dates = [...found];
  for (let untilMs = beforeMs; ; ) {
    const block = yield* row(
      "SELECT * FROM point_block WHERE variable_id = ? AND first_ms < ? ORDER BY first_ms DESC LIMIT 1",
      ...[id, untilMs],
    );
    if (block === undefined) break;
    const { firstMs } = blockOf(block);
    for (const ms of partOf(blockOf(block), -FAR_MS, untilMs - 1).atMs) dates.push(ms);
    untilMs = firstMs;
    // Rows that are older than the oldest that was found may be missing.
    if (dates.filter((ms) => ms >= firstMs).length >= count) break;
  }
  dates.sort((one, other) => one - other);
  return count === 0 ? [] : dates.slice(-count);
}

function* tallyOf(id: number, { fromMs, untilMs }: Span, { phaseMs, stepMs }: EvenDates) {
  const sql = `SELECT count(*) AS points, coalesce(sum(CASE WHEN (at_ms - ?) % ? = 0 THEN 1 ELSE 0 END), 0) AS even
    FROM point WHERE ${SPAN}`;
  const found = yield* row(sql, phaseMs, stepMs, id, fromMs, untilMs);
  let [points, even] = [Number(found?.["points"]), Number(found?.["even"])];
  for (const block of yield* blocksWithin(id, fromMs, untilMs - 1)) {
    const { atMs } = partOf(block, fromMs, untilMs - 1);
    points += atMs.length;
    for (const ms of atMs) if ((ms - phaseMs) % stepMs === 0) even += 1;
  }
  return { points, even };
}
