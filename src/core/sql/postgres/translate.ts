/** Converts statements to PostgreSQL: numbered values, and one statement for many tuples. */
import type { ColumnType, Value } from "../statements.ts";

/**
 * `?` becomes `$1`, `$2`, … in order. No statement of the project contains a question mark in a text or an
 * operator.
 */
export function numbered(sql: string, prefix = "$"): string {
  let count = 0;
  return sql.replaceAll("?", () => {
    count += 1;
    return `${prefix}${count}`;
  });
}

/**
 * A SELECT for each tuple: returns the place of the tuple, from 1, and the columns of the row that was found,
 * or nulls.
 */
export function selectEach(sql: string, types: readonly ColumnType[]): string {
  return `SELECT tuple.place, found.* FROM ${tuplesOf(types)}
    LEFT JOIN LATERAL (${numbered(sql, "tuple.v")} LIMIT 1) AS found ON true
    ORDER BY tuple.place`;
}

/** An `INSERT … VALUES (?, …)` of all tuples, in their order. */
export function insertEach(sql: string, types: readonly ColumnType[]): string {
  const each = numbered(sql, "tuple.v");
  return each.replace(
    /VALUES \(([^)]*)\)/,
    (_all, values: string) => `SELECT ${values} FROM ${tuplesOf(types)} ORDER BY tuple.place`,
  );
}

function tuplesOf(types: readonly ColumnType[]): string {
  const arrays = types.map((type, index) => `$${index + 1}::${type}[]`);
  const names = types.map((_type, index) => `v${index + 1}`);
  return `unnest(${arrays.join(", ")}) WITH ORDINALITY AS tuple (${names.join(", ")}, place)`;
}

/** Returns one array for each column. */
export function columnsOf(tuples: readonly (readonly Value[])[], width: number): readonly (readonly Value[])[] {
  return Array.from({ length: width }, (_, index) => tuples.map((tuple) => storable(tuple[index] ?? null)));
}

/** PostgreSQL's text holds every character except NUL, which only text of other systems may contain. */
export function storable(value: Value): Value {
  return typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\u{fffd}") : value;
}
