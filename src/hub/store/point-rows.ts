/** Converts points from rows of both databases. */
import type { PointRow } from "./records.ts";
import { number, text } from "./structure-rows.ts";

type Row = Readonly<Record<string, unknown>>;

/** Beyond every date that a point can have. */
export const FAR_MS = 8_640_000_000_000_000;

export function pointOf(row: Row): PointRow {
  return {
    atMs: Number(row["at_ms"]),
    value: Number(row["value"]),
    version: text(row["version"]),
    versionUs: number(row["version_us"]),
    tags: objectOf(row["tags"]),
    batchTags: objectOf(row["batch_tags"]),
  };
}

/** For a query of dates and values only. */
export function bareOf(atMs: unknown, value: unknown): PointRow {
  return {
    atMs: Number(atMs),
    value: Number(value),
    version: null,
    versionUs: null,
    tags: null,
    batchTags: null,
  };
}

function objectOf(json: unknown): Readonly<Record<string, string>> | null {
  return typeof json === "string" ? JSON.parse(json) : null;
}
