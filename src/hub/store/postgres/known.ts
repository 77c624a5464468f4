/** Points that the store already has: whether there can be any, which they are, and their new values. */
import type { FirstNumbers, Labels, ReadingColumns } from "../columns.ts";
import type { CopyRows } from "./copy.ts";
import type { Sql } from "./database.ts";
import { type Month, monthOf } from "./partitions.ts";

/** The first and the last date of readings of one variable that follow each other. */
interface Span {
  readonly variableId: number;
  readonly firstMs: number;
  lastMs: number;
}

const NO_LABELS: Labels = { version: null, tags: null, batchTags: null };

/** Dates farther apart form separate spans, so that the partitions between them are not queried. */
const GAP_MS = 31 * 86_400_000;

/**
 * Ids of the variables that have any stored point within the dates of their new readings. `order`: by
 * variable and date.
 */
export async function crowdedVariables(
  { all }: Sql,
  readings: ReadingColumns,
  order: Uint32Array,
): Promise<ReadonlySet<number>> {
  const crowded = new Set<number>();
  for (const spans of byMonth(spansOf(readings, order), ({ firstMs }) => firstMs)) {
    const rows = await all(
      `SELECT span.id
        FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS span (id, first_ms, last_ms)
        CROSS JOIN LATERAL (SELECT 1 FROM point
          WHERE variable_id = span.id AND at_ms BETWEEN span.first_ms AND span.last_ms
          AND ${WITHIN} LIMIT 1) AS found`,
      literal(spans, ({ variableId }) => variableId),
      literal(spans, ({ firstMs }) => firstMs),
      literal(spans, ({ lastMs }) => lastMs),
      ...boundsOf(
        spans,
        ({ firstMs }) => firstMs,
        ({ lastMs }) => lastMs,
      ),
    );
    for (const row of rows) crowded.add(Number(row["id"]));
  }
  return crowded;
}

function* spansOf(readings: ReadingColumns, order: Uint32Array): Generator<Span> {
  let span: Span | undefined;
  for (const index of order) {
    const variableId = readings.variables[readings.variable[index] ?? 0]?.id ?? 0;
    const atMs = readings.atMs[index] ?? 0;
    if (span?.variableId === variableId && atMs - span.lastMs < GAP_MS) {
      span.lastMs = atMs;
      continue;
    }
    if (span !== undefined) yield span;
    span = { variableId, firstMs: atMs, lastMs: atMs };
  }
  if (span !== undefined) yield span;
}

/** Returns the stored ones of these points. */
export async function readKnown({ all }: Sql, points: readonly Point[]): Promise<ReadonlySet<Point>> {
  const known = new Set<Point>();
  for (const wanted of pointsByMonth(points)) {
    const rows = await all(
      `SELECT wanted.position FROM ${KEYS} WITH ORDINALITY AS wanted (variable_id, at_ms, position)
        CROSS JOIN LATERAL (SELECT 1 FROM point
          WHERE point.variable_id = wanted.variable_id AND point.at_ms = wanted.at_ms
          AND point.${WITHIN} LIMIT 1) AS found`,
      ...keysOf(wanted),
      ...boundsOf(wanted, dateOf),
    );
    for (const row of rows) {
      const point = wanted[Number(row["position"]) - 1];
      if (point !== undefined) known.add(point);
    }
  }
  return known;
}

/**
 * The last reading of each becomes its value. A reading that equals the stored value, as in a repeated file,
 * writes nothing.
 */
export async function putKnown(
  sql: Sql,
  readings: ReadingColumns,
  known: ReadonlySet<Point>,
  numbers: FirstNumbers,
): Promise<void> {
  for (const points of pointsByMonth(known)) {
    const ends = points.map((point) => lastOf(readings, point));
    const last = ends.map(({ index }) => index);
    const labels = last.map((index) => labelsOf(readings, index));
    await sql.run(
      `UPDATE point SET value = given.value, version = given.version, tags = given.tags, batch_tags = given.batch_tags,
          origin_id = given.origin_id
        FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS DOUBLE PRECISION[]), CAST(? AS TEXT[]),
        CAST(? AS TEXT[]),
          CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BOOLEAN[]))
          AS given (variable_id, at_ms, value, version, tags, batch_tags, origin_id, is_only)
        WHERE point.variable_id = given.variable_id AND point.at_ms = given.at_ms AND point.${WITHIN}
          AND (NOT given.is_only OR (point.value, point.version, point.tags, point.batch_tags)
            IS DISTINCT FROM (given.value, given.version, given.tags, given.batch_tags))`,
      ...keysOf(points),
      literal(last, (index) => readings.value[index] ?? 0),
      literal(labels, ({ version }) => quoted(version)),
      literal(labels, ({ tags }) => quoted(tags)),
      literal(labels, ({ batchTags }) => quoted(batchTags)),
      literal(last, (index) => originOf(readings, index, numbers)),
      literal(ends, ({ isOnly }) => String(isOnly)),
      ...boundsOf(points, dateOf),
    );
  }
}

export const pointsByMonth = (points: Iterable<Point>) => byMonth(points, ({ atMs }) => atMs);

/** One group for each partition that contains any of them, so that a statement locks no others. */
export function byMonth<Item>(items: Iterable<Item>, dateOf: (item: Item) => number): Iterable<readonly Item[]> {
  const months = new Map<number, Item[]>();
  let month: Month | null = null;
  for (const item of items) {
    const ms = dateOf(item);
    if (month === null || ms < month.fromMs || ms >= month.endMs) month = monthOf(ms);
    const group = months.get(month.fromMs);
    if (group === undefined) months.set(month.fromMs, [item]);
    else group.push(item);
  }
  return months.values();
}

/**
 * For the parameters of `boundsOf`. The planner knows the values, and neither reads nor locks the partitions
 * outside them.
 */
export const WITHIN = "at_ms BETWEEN ? AND ?";

/** An item of FROM, for the parameters of `keysOf`. */
export const KEYS = "unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]))";

export function keysOf(points: readonly Point[]): [string, string] {
  return [literal(points, ({ variableId }) => variableId), literal(points, ({ atMs }) => atMs)];
}

/** The first and the last date: only the partitions between them are read and locked. */
export function boundsOf<Item>(
  items: readonly Item[],
  firstOf: (item: Item) => number,
  lastOf = firstOf,
): [number, number] {
  return [
    items.reduce((least, item) => Math.min(least, firstOf(item)), Number.MAX_SAFE_INTEGER),
    items.reduce((most, item) => Math.max(most, lastOf(item)), Number.MIN_SAFE_INTEGER),
  ];
}

export const dateOf = ({ atMs }: Pick<Point, "atMs">) => atMs;

/** An array in PostgreSQL's text format; the client's own conversion costs several times as much. */
export function literal<Item>(items: readonly Item[], written: (item: Item) => number | string): string {
  return `{${items.map(written).join(",")}}`;
}

function quoted(text: string | null): string {
  return text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

// A point that is being written, and the columns of its row.

/** Readings of one point, in the order of their arrival. */
export interface Point {
  readonly variableId: number;
  readonly atMs: number;
  /** Null: the variable has no versions. */
  readonly versionsMax: number | null;
  readonly indices: readonly number[];
}

function labelsOf(readings: ReadingColumns, index: number): Labels {
  return readings.labelsOf(index) ?? NO_LABELS;
}

export interface NumberedReadings {
  readonly readings: ReadingColumns;
  readonly numbers: FirstNumbers;
}

function originOf(readings: ReadingColumns, index: number, { firstOrigin }: FirstNumbers): number {
  return firstOrigin + (readings.operation[index] ?? 0);
}

/**
 * The reading that a point has in the end: of its last readings that are equal the first, since a repeat does not
 * change where a point came from. `isOnly`: there was no other before.
 */
export function lastOf(readings: ReadingColumns, { indices }: Point): { index: number; isOnly: boolean } {
  let at = indices.length - 1;
  while (at > 0 && isEqual(readings, indices[at - 1] ?? 0, indices[at] ?? 0)) at -= 1;
  return { index: indices[at] ?? 0, isOnly: at === 0 };
}

function isEqual(readings: ReadingColumns, one: number, other: number): boolean {
  const [a, b] = [labelsOf(readings, one), labelsOf(readings, other)];
  const isSame = a.version === b.version && a.tags === b.tags && a.batchTags === b.batchTags;
  return isSame && readings.value[one] === readings.value[other];
}

/** The columns from the value on. */
export function copyReading(rows: CopyRows, readings: ReadingColumns, index: number, numbers: FirstNumbers): void {
  const { version, tags, batchTags } = labelsOf(readings, index);
  rows.double(readings.value[index] ?? 0);
  rows.text(version);
  rows.text(tags);
  rows.text(batchTags);
  rows.bigint(originOf(readings, index, numbers));
}
