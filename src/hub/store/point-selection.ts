/** Selects the rows of the tables of points for a read; the same SQL in either store. */
import type { Row } from "./database.ts";
import { bareOf } from "./point-rows.ts";
import type { PointPage, PointRange, PointRow, PointView, VariableFacts } from "./records.ts";

export type HeadAsk = Omit<PointRange, keyof PointPage> & { readonly variable: VariableFacts };
/** A short page of points, without their versions. */
export type HeadPage = PointPage & {
  readonly page: { readonly limit: number };
  readonly view: Exclude<PointView, { readonly kind: "all" }>;
};

/**
 * One row per point. For a versioned variable that is read by tag or as of a moment, a row of its versions;
 * otherwise the latest value.
 */
export function selection(variable: VariableFacts, view: PointView): { from: string; values: (string | number)[] } {
  const { table, condition, values } = rowsOf(variable, view);
  return {
    from: `FROM ${table} AS seen WHERE variable_id = ?${condition}`,
    values: [variable.id, ...values],
  };
}

/** All versions of points that were read in this order. */
export function versionsOfPoints(
  { id }: Pick<VariableFacts, "id">,
  points: readonly PointRow[],
  order: "ASC" | "DESC",
): { text: string; values: number[] } {
  const [first = 0, last = 0] = [points[0]?.atMs, points.at(-1)?.atMs];
  return {
    text: `SELECT * FROM point_version WHERE variable_id = ? AND at_ms BETWEEN ? AND ?
      ORDER BY at_ms ${order}, version_us`,
    values: [id, Math.min(first, last), Math.max(first, last)],
  };
}

/**
 * The same without a variable: the table, read as `seen`, and the conditions on its rows beside their
 * `variable_id`.
 */
export function rowsOf(
  { isVersioned }: Pick<VariableFacts, "isVersioned">,
  view: PointView,
): { table: "point" | "point_version"; condition: string; values: (string | number)[] } {
  if (view.kind === "tag") {
    const table = isVersioned ? "point_version" : "point";
    return { table, condition: " AND version = ?", values: [view.tag] };
  }
  if (view.kind === "asOf" && isVersioned) {
    return {
      table: "point_version",
      condition: ` AND version_us = (SELECT max(version_us) FROM point_version AS known
        WHERE known.variable_id = seen.variable_id AND known.at_ms = seen.at_ms AND known.version_us <= ?)`,
      values: [view.versionUs],
    };
  }
  if (view.kind === "since" && isVersioned) {
    return {
      table: "point_version",
      condition: ` AND version_us >= ? AND version_us = (SELECT max(version_us) FROM point_version AS known
        WHERE known.variable_id = seen.variable_id AND known.at_ms = seen.at_ms)`,
      values: [view.versionUs],
    };
  }
  return { table: "point", condition: "", values: [] };
}

/** Whether points of the view may be in blocks: these have neither versions nor tags. */
export function mayBeInBlocks({ isVersioned }: Pick<VariableFacts, "isVersioned">, view: PointView): boolean {
  return !isVersioned && view.kind !== "tag";
}

/** The block that is nearest to the end that was asked for, by its first date. */
export interface NearestBlock {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly lastValue: number;
}

export function nearestOf(found: Row): NearestBlock {
  return {
    firstMs: Number(found["first_ms"]),
    lastMs: Number(found["last_ms"]),
    lastValue: Number(found["last_value"]),
  };
}

/** Whether the block may have some of the points: not when there are enough rows on this side of it. */
export function isBehind(
  block: NearestBlock | undefined,
  rows: readonly PointRow[],
  enough: number,
  order: "ASC" | "DESC",
): boolean {
  if (block === undefined) return false;
  const last = rows.at(-1);
  if (last === undefined || rows.length < enough) return true;
  return order === "ASC" ? block.firstMs < last.atMs : block.firstMs > last.atMs;
}

/** The latest point without unpacking its block; null: more is asked for, or it is outside of the period. */
export function latestOf(
  { lastMs, lastValue }: NearestBlock,
  rows: readonly PointRow[],
  ask: HeadAsk,
  { page, order }: HeadPage,
): PointRow | null {
  if (order === "ASC" || page.offset > 0 || page.limit !== 1) return null;
  if (lastMs > (ask.lastMs ?? lastMs) || lastMs < (ask.fromMs ?? lastMs)) return null;
  const [row] = rows;
  return row !== undefined && row.atMs > lastMs ? row : bareOf(lastMs, lastValue);
}
