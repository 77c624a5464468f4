/** Writes the versions of points. */
import { planVersions, type VersionEntry } from "../version-plan.ts";
import type { CopySql } from "./copy.ts";
import type { Sql } from "./database.ts";
import { boundsOf, dateOf, KEYS, keysOf, literal, pointsByMonth, WITHIN } from "./known.ts";
import { copyReading, type NumberedReadings, type Point } from "./point.ts";

/** A row to be written, by the index of its reading. */
interface Item extends VersionEntry {
  readonly point: Point;
  readonly index: number;
}

interface Removed extends VersionEntry {
  readonly point: Point;
}

/** Returns the indices of readings that replaced a version. `known`: the points that were there before. */
export async function putVersions(
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
