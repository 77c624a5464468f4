/** Writes readings into the tables of points: whole columns a statement, in the order of the tables. */
import type { Labels, ReadingColumns } from "../columns.ts";
import { planVersions, type Retention, type VersionEntry, versionsKept } from "../version-plan.ts";
import type { Sql, Value } from "./database.ts";
import type { Partitions } from "./partitions.ts";

/** Points of one statement. */
const POINTS = 20_000;
const NO_LABELS: Labels = { version: null, tags: null, batchTags: null };

export interface PointWriter {
  /** Within a transaction. `firstUs`: VersionTimestamp of the first reading; those of the others follow by their index. */
  write(sql: Sql, readings: ReadingColumns, firstUs: number): Promise<number[]>;
}

/** Readings of one point, in the order of their arrival. */
interface Point {
  readonly variableId: number;
  readonly atMs: number;
  /** Null: the variable has no versions. */
  readonly versionsMax: number | null;
  readonly indices: number[];
}

/** A row of a table of points, by the index of its reading. */
interface Item extends VersionEntry {
  readonly point: Point;
  readonly index: number;
}

export function createPointWriter(partitions: Partitions, retention: Retention): PointWriter {
  return {
    async write(sql, readings, firstUs) {
      const replaced: number[] = [];
      const count = (index: number) => {
        const operation = readings.operation[index] ?? 0;
        replaced[operation] = (replaced[operation] ?? 0) + 1;
      };
      for (const points of chunksOf(readings, retention)) {
        await partitions.ensure("point", datesOf(points));
        const known = await putPoints(sql, readings, points);
        for (const [position, { indices, versionsMax: limit }] of points.entries())
          if (limit === null)
            for (const index of indices.slice(known[position] === true ? 0 : 1)) count(index);
        const versioned = points.flatMap((point, position) =>
          point.versionsMax === null ? [] : [{ point, isKnown: known[position] === true }],
        );
        if (versioned.length === 0) continue;
        await partitions.ensure("point_version", datesOf(versioned.map(({ point }) => point)));
        for (const index of await putVersions(sql, readings, versioned, firstUs)) count(index);
      }
      return Array.from(replaced, (total) => total ?? 0);
    },
  };
}

function* chunksOf(readings: ReadingColumns, retention: Retention): Generator<readonly Point[]> {
  let points: Point[] = [];
  let last: Point | null = null;
  for (const index of readings.order()) {
    const variable = readings.variables[readings.variable[index] ?? 0];
    const atMs = readings.atMs[index] ?? 0;
    if (variable === undefined) throw new RangeError("a reading names no variable of its columns");
    if (last !== null && last.variableId === variable.id && last.atMs === atMs) {
      last.indices.push(index);
      continue;
    }
    if (points.length === POINTS) {
      yield points;
      points = [];
    }
    last = {
      variableId: variable.id,
      atMs,
      versionsMax: variable.isVersioned ? versionsKept(variable, retention) : null,
      indices: [index],
    };
    points.push(last);
  }
  if (points.length > 0) yield points;
}

function* datesOf(points: readonly Point[]): Generator<number> {
  for (const { atMs } of points) yield atMs;
}

/** The last reading of each point becomes its value; returns which of the points were there before. */
async function putPoints(sql: Sql, readings: ReadingColumns, points: readonly Point[]): Promise<boolean[]> {
  const fresh = await insertPoints(sql, readings, points);
  if (fresh === null) return [];
  const known = points.map(({ variableId, atMs }) => fresh.get(variableId)?.has(atMs) !== true);
  const rest = points.filter((_, position) => known[position]);
  const { columns, from, values } = rowsOf(readings, rest.map(latestOf), false);
  await sql.run(
    `INSERT INTO point (${columns}) SELECT * FROM ${from} ON CONFLICT (variable_id, at_ms) DO UPDATE
      SET value = excluded.value, version = excluded.version, tags = excluded.tags, batch_tags = excluded.batch_tags`,
    ...values,
  );
  return known;
}

/** The dates of each variable whose points were new; null: all of them were. */
async function insertPoints(
  { get }: Sql,
  readings: ReadingColumns,
  points: readonly Point[],
): Promise<Map<number, Set<number>> | null> {
  const { columns, from, values } = rowsOf(readings, points.map(latestOf), false);
  const row = await get(
    `WITH fresh AS (INSERT INTO point (${columns}) SELECT * FROM ${from} ON CONFLICT DO NOTHING RETURNING variable_id, at_ms)
      SELECT count(*) AS total, CASE WHEN count(*) < ? THEN string_agg(variable_id || ' ' || at_ms, ',') END AS keys FROM fresh`,
    ...values,
    points.length,
  );
  if (row?.["total"] === points.length) return null;
  const fresh = new Map<number, Set<number>>();
  for (const key of String(row?.["keys"] ?? "").split(",")) {
    const [variableId = 0, atMs = 0] = key.split(" ").map(Number);
    const dates = fresh.get(variableId) ?? new Set<number>();
    fresh.set(variableId, dates.add(atMs));
  }
  return fresh;
}

function latestOf(point: Point): Item {
  return { point, index: point.indices.at(-1) ?? 0, version: null, versionUs: 0 };
}

/** Returns the indices of readings that replaced a version. */
async function putVersions(
  sql: Sql,
  readings: ReadingColumns,
  points: readonly { readonly point: Point; readonly isKnown: boolean }[],
  firstUs: number,
): Promise<number[]> {
  const known = await versionsOf(
    sql,
    points.flatMap(({ point, isKnown }) => (isKnown ? [point] : [])),
  );
  const added: Item[] = [];
  const removed: (VersionEntry & { readonly point: Point })[] = [];
  const replaced: number[] = [];
  for (const { point } of points) {
    const submitted = point.indices.map((index) => ({
      point,
      index,
      version: readings.labels[index]?.version ?? null,
      versionUs: firstUs + index,
    }));
    const plan = planVersions(known.get(point) ?? [], submitted, point.versionsMax ?? 0);
    added.push(...plan.added);
    for (const entry of plan.removed) removed.push({ ...entry, point });
    replaced.push(...point.indices.filter((_, position) => plan.replaced[position]));
  }
  if (removed.length > 0)
    await sql.run(
      `DELETE FROM point_version WHERE (variable_id, at_ms, version_us) IN
        (SELECT * FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])))`,
      literal(removed, ({ point }) => point.variableId),
      literal(removed, ({ point }) => point.atMs),
      literal(removed, ({ versionUs }) => versionUs),
    );
  const { columns, from, values } = rowsOf(readings, added, true);
  await sql.run(`INSERT INTO point_version (${columns}) SELECT * FROM ${from}`, ...values);
  return replaced;
}

/** The versions of points, oldest first. */
async function versionsOf({ all }: Sql, points: readonly Point[]): Promise<Map<Point, VersionEntry[]>> {
  const versions = new Map<Point, VersionEntry[]>();
  if (points.length === 0) return versions;
  const rows = await all(
    `SELECT wanted.position, version_us, version FROM
      unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) WITH ORDINALITY AS wanted (variable_id, at_ms, position)
      JOIN point_version USING (variable_id, at_ms) ORDER BY version_us`,
    literal(points, ({ variableId }) => variableId),
    literal(points, ({ atMs }) => atMs),
  );
  for (const row of rows) {
    const point = points[Number(row["position"]) - 1];
    if (point === undefined) continue;
    const version = typeof row["version"] === "string" ? row["version"] : null;
    const entries = versions.get(point) ?? [];
    entries.push({ versionUs: Number(row["version_us"]), version });
    versions.set(point, entries);
  }
  return versions;
}

/** Rows as an item of FROM: one parameter a column. */
function rowsOf(
  readings: ReadingColumns,
  items: readonly Item[],
  withVersion: boolean,
): { columns: string; from: string; values: Value[] } {
  const columns = ["variable_id", "at_ms", "value"];
  const types = ["BIGINT[]", "BIGINT[]", "DOUBLE PRECISION[]"];
  const values: Value[] = [
    literal(items, ({ point }) => point.variableId),
    literal(items, ({ point }) => point.atMs),
    literal(items, ({ index }) => readings.value[index] ?? 0),
  ];
  if (withVersion) {
    columns.push("version_us");
    types.push("BIGINT[]");
    values.push(literal(items, ({ versionUs }) => versionUs));
  }
  if (items.some(({ index }) => readings.labels[index] !== null)) {
    columns.push("version", "tags", "batch_tags");
    types.push("TEXT[]", "TEXT[]", "TEXT[]");
    const labels = items.map(({ index }) => readings.labels[index] ?? NO_LABELS);
    values.push(
      literal(labels, ({ version }) => quoted(version)),
      literal(labels, ({ tags }) => quoted(tags)),
      literal(labels, ({ batchTags }) => quoted(batchTags)),
    );
  }
  return {
    columns: columns.join(", "),
    from: `unnest(${types.map((type) => `CAST(? AS ${type})`).join(", ")})`,
    values,
  };
}

/** An array in the words of PostgreSQL; the client's own way costs several times as much. */
function literal<Item>(items: readonly Item[], written: (item: Item) => number | string): string {
  return `{${items.map(written).join(",")}}`;
}

function quoted(text: string | null): string {
  return text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
