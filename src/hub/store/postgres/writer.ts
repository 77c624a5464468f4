/**
 * Writes readings into the tables of points. New points, normally nearly all, are written by COPY in the
 * order of the tables; only for variables that have stored points between the new dates does a query find the
 * known ones.
 */
import type { Packing } from "../blocks/pack.ts";
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import type { DamagedPoints, WrittenReadings } from "../ingest.ts";
import { planVersions, type Retention, type VersionEntry, versionsKept } from "../records.ts";
import { writeBlocks } from "./blocks.ts";
import type { CopySql } from "./copy.ts";
import type { Sql } from "./database.ts";
import {
  boundsOf,
  copyReading,
  crowdedVariables,
  dateOf,
  KEYS,
  keysOf,
  lastOf,
  literal,
  type NumberedReadings,
  type Point,
  pointsByMonth,
  putKnown,
  readKnown,
  WITHIN,
} from "./known.ts";
import type { Partitions } from "./partitions.ts";

/** Maximum number of points that are objects in memory at one time. */
const POINTS = 20_000;
const POINT_COLUMNS = "variable_id, at_ms, value, version, tags, batch_tags, origin_id";

export interface PointWriter {
  /** Within a transaction. */
  write(sql: CopySql, readings: ReadingColumns, numbers: FirstNumbers): Promise<WrittenReadings>;
}

/** No other process adds points of the account meanwhile, since each writer locks its lane. */
export function createPointWriter(partitions: Partitions, retention: Retention, packing: Packing): PointWriter {
  return {
    async write(sql, readings, numbers) {
      const replaced: number[] = [];
      const count = (indices: Iterable<number>) => {
        for (const index of indices) {
          const operation = readings.operation[index] ?? 0;
          replaced[operation] = (replaced[operation] ?? 0) + 1;
        }
      };
      const damaged: DamagedPoints[] = [];
      const order = await writeBlocks(sql, { readings, numbers, partitions, packing, damaged, count });
      await partitions.ensure("point", datesOf(readings, order));
      const crowded = await crowdedVariables(sql, readings, order);
      const all = () => pointsOf(readings, order, retention);
      const isPlain = ({ variableId, versionsMax }: Point) => versionsMax === null && !crowded.has(variableId);
      await copyPoints(sql, { readings, numbers }, filtered(all(), isPlain), ({ indices }) => {
        if (indices.length > 1) count(indices.slice(1));
      });
      for (const points of chunksOf(filtered(all(), (point) => !isPlain(point)))) {
        const known = await readKnown(
          sql,
          points.filter(({ variableId }) => crowded.has(variableId)),
        );
        await putKnown(sql, readings, known, numbers);
        await copyPoints(
          sql,
          { readings, numbers },
          filtered(points, (point) => !known.has(point)),
        );
        for (const point of points)
          if (point.versionsMax === null) count(known.has(point) ? point.indices : point.indices.slice(1));
        const versioned = points.filter(({ versionsMax }) => versionsMax !== null);
        if (versioned.length === 0) continue;
        await partitions.ensure(
          "point_version",
          versioned.map(({ atMs }) => atMs),
        );
        count(await putVersions(sql, { readings, numbers }, versioned, known));
      }
      return { replaced: Array.from(replaced, (total) => total ?? 0), damaged };
    },
  };
}

function* datesOf(readings: ReadingColumns, order: Uint32Array): Generator<number> {
  for (const index of order) yield readings.atMs[index] ?? 0;
}

/** In the order of the tables. */
function* pointsOf(readings: ReadingColumns, order: Uint32Array, retention: Retention): Generator<Point> {
  for (let begin = 0; begin < order.length; ) {
    const index = order[begin] ?? 0;
    const variable = readings.variables[readings.variable[index] ?? 0];
    if (variable === undefined) throw new RangeError("a reading names no variable of its columns");
    const atMs = readings.atMs[index] ?? 0;
    const indices = [index];
    for (begin += 1; begin < order.length; begin += 1) {
      const next = order[begin] ?? 0;
      if (readings.variable[next] !== readings.variable[index] || readings.atMs[next] !== atMs) break;
      indices.push(next);
    }
    const versionsMax = variable.isVersioned ? versionsKept(variable, retention) : null;
    yield { variableId: variable.id, atMs, versionsMax, indices };
  }
}

function* filtered(points: Iterable<Point>, isWanted: (point: Point) => boolean): Generator<Point> {
  for (const point of points) if (isWanted(point)) yield point;
}

function* chunksOf(points: Iterable<Point>): Generator<readonly Point[]> {
  let chunk: Point[] = [];
  for (const point of points) {
    chunk.push(point);
    if (chunk.length < POINTS) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** The last reading of each point is its value. */
async function copyPoints(
  sql: CopySql,
  { readings, numbers }: NumberedReadings,
  points: Iterator<Point>,
  written: (point: Point) => void = () => {},
): Promise<void> {
  let next = points.next();
  if (next.done === true) return;
  await sql.copy(`point (${POINT_COLUMNS})`, 7, (rows) => {
    if (next.done === true) return false;
    const point = next.value;
    rows.row();
    rows.bigint(point.variableId);
    rows.bigint(point.atMs);
    copyReading(rows, readings, lastOf(readings, point).index, numbers);
    written(point);
    next = points.next();
    return true;
  });
}

// Writes the versions of points.

/** A row to be written, by the index of its reading. */
interface Item extends VersionEntry {
  readonly point: Point;
  readonly index: number;
}

interface Removed extends VersionEntry {
  readonly point: Point;
}

/** Returns the indices of readings that replaced a version. `known`: the points that were there before. */
async function putVersions(
  sql: CopySql,
  numbered: NumberedReadings,
  points: readonly Point[],
  known: ReadonlySet<Point>,
): Promise<number[]> {
  const versions = await readVersions(
    sql,
    points.filter((point) => known.has(point)),
  );
  const { readings, numbers } = numbered;
  const added: Item[] = [];
  const removed: Removed[] = [];
  const replaced: number[] = [];
  for (const point of points) {
    const submitted = point.indices.map((index) => ({
      point,
      index,
      version: readings.labelsOf(index)?.version ?? null,
      versionUs: numbers.firstUs + index,
    }));
    const plan = planVersions(versions.get(point) ?? [], submitted, point.versionsMax ?? 0);
    added.push(...plan.added);
    for (const entry of plan.removed) removed.push({ ...entry, point });
    replaced.push(...point.indices.filter((_, position) => plan.replaced[position]));
  }
  await removeVersions(sql, removed);
  await copyVersions(sql, numbered, added);
  return replaced;
}

async function removeVersions({ run }: Sql, removed: readonly Removed[]): Promise<void> {
  const ofPoint = new Map<Point, number[]>();
  for (const { point, versionUs } of removed) ofPoint.set(point, [...(ofPoint.get(point) ?? []), versionUs]);
  for (const points of pointsByMonth(ofPoint.keys())) {
    const rows = points.flatMap((point) => (ofPoint.get(point) ?? []).map((versionUs) => ({ point, versionUs })));
    await run(
      `DELETE FROM point_version USING unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]))
          AS gone (variable_id, at_ms, version_us)
        WHERE point_version.variable_id = gone.variable_id AND point_version.at_ms = gone.at_ms
          AND point_version.version_us = gone.version_us AND point_version.${WITHIN}`,
      ...keysOf(rows.map(({ point }) => point)),
      literal(rows, ({ versionUs }) => versionUs),
      ...boundsOf(points, dateOf),
    );
  }
}

/** The versions of points, oldest first. */
async function readVersions({ all }: Sql, points: readonly Point[]): Promise<Map<Point, VersionEntry[]>> {
  const versions = new Map<Point, VersionEntry[]>();
  for (const wanted of pointsByMonth(points)) {
    const rows = await all(
      `SELECT wanted.position, version_us, version FROM ${KEYS} WITH ORDINALITY AS wanted (variable_id, at_ms, position)
        JOIN point_version USING (variable_id, at_ms) WHERE point_version.${WITHIN} ORDER BY version_us`,
      ...keysOf(wanted),
      ...boundsOf(wanted, dateOf),
    );
    for (const row of rows) {
      const point = wanted[Number(row["position"]) - 1];
      if (point === undefined) continue;
      const version = typeof row["version"] === "string" ? row["version"] : null;
      const entries = versions.get(point) ?? [];
      entries.push({ versionUs: Number(row["version_us"]), version });
      versions.set(point, entries);
    }
  }
  return versions;
}

async function copyVersions(
  sql: CopySql,
  { readings, numbers }: NumberedReadings,
  items: readonly Item[],
): Promise<void> {
  let next = 0;
  if (items.length === 0) return;
  const columns = "variable_id, at_ms, version_us, value, version, tags, batch_tags, origin_id";
  await sql.copy(`point_version (${columns})`, 8, (rows) => {
    const item = items[next];
    if (item === undefined) return false;
    next += 1;
    rows.row();
    rows.bigint(item.point.variableId);
    rows.bigint(item.point.atMs);
    rows.bigint(item.versionUs);
    copyReading(rows, readings, item.index, numbers);
    return true;
  });
}
