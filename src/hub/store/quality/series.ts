/** Reads of whole series for reports of their quality, in a thread and on a connection of their own. */
import { type Database, row, rows } from "../database.ts";

/** Milliseconds since 1970 in UTC; the end is excluded. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Columns of points, in order of date. */
export interface Samples {
  readonly atMs: Float64Array;
  readonly values: Float64Array;
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
export function seriesMethods({ ask }: Database): Omit<SeriesStore, "read"> {
  return {
    async firstMs(id) {
      const found = await ask(() => row("SELECT at_ms FROM point WHERE variable_id = ? ORDER BY at_ms LIMIT 1", id));
      return found === undefined ? null : Number(found["at_ms"]);
    },
    async nextMs(id, { fromMs, untilMs }) {
      const sql = `SELECT at_ms FROM point WHERE ${SPAN} ORDER BY at_ms LIMIT 1`;
      const found = await ask(() => row(sql, id, fromMs, untilMs));
      return found === undefined ? null : Number(found["at_ms"]);
    },
    async newest(id, beforeMs, count) {
      const sql = "SELECT at_ms FROM point WHERE variable_id = ? AND at_ms < ? ORDER BY at_ms DESC LIMIT ?";
      const found = await ask(() => rows(sql, id, beforeMs, count));
      return found.map((one) => Number(one["at_ms"])).toReversed();
    },
    async count(id, { fromMs, untilMs }) {
      const found = await ask(() => row(`SELECT count(*) AS points FROM point WHERE ${SPAN}`, id, fromMs, untilMs));
      return Number(found?.["points"]);
    },
    async tally(id, { fromMs, untilMs }, { phaseMs, stepMs }) {
      const sql = `SELECT count(*) AS points, coalesce(sum(CASE WHEN (at_ms - ?) % ? = 0 THEN 1 ELSE 0 END), 0) AS even
        FROM point WHERE ${SPAN}`;
      const found = await ask(() => row(sql, phaseMs, stepMs, id, fromMs, untilMs));
      return { points: Number(found?.["points"]), even: Number(found?.["even"]) };
    },
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
