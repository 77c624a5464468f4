/**
 * Statements that run on SQLite, which returns results at once, and on PostgreSQL, which returns them over a
 * network. A unit of work is a generator that yields statements and receives their results; the store of each
 * database drives it. The text is SQL that both understand, with `?` for values in their order.
 */

export type Value = string | number | bigint | null;

/** Types of columns, for statements that take many tuples at once. */
export type ColumnType = "text" | "bigint";

export interface OneStatement<Values = Value> {
  /**
   * `cells`: rows as arrays, which cost a part of the memory of objects. `nothing`: the work continues before
   * the statement has finished, so that it does not wait for the network; a failure of the statement fails
   * the whole work.
   */
  readonly want: "row" | "rows" | "cells" | "changes" | "nothing";
  readonly sql: string;
  readonly values: readonly Values[];
}

/** The same statement for each tuple; `row each` returns the first row of each as an array, or undefined. */
export interface EachStatement {
  readonly want: "row each" | "nothing each";
  readonly sql: string;
  readonly types: readonly ColumnType[];
  readonly tuples: readonly (readonly Value[])[];
}

export type Statement = OneStatement | EachStatement;

/**
 * A unit of work on a database. Its result counts only after it has finished. It may be repeated from its
 * beginning.
 */
export type Steps<T> = Generator<Statement, T, unknown>;

export function* row<Row>(sql: string, ...values: Value[]): Steps<Row | undefined> {
  return (yield { want: "row", sql, values }) as Row | undefined;
}

export function* rows<Row>(sql: string, ...values: Value[]): Steps<readonly Row[]> {
  return (yield { want: "rows", sql, values }) as readonly Row[];
}

export function* cells<Row extends readonly unknown[]>(sql: string, ...values: Value[]): Steps<readonly Row[]> {
  return (yield { want: "cells", sql, values }) as readonly Row[];
}

export function* execute(sql: string, ...values: Value[]): Steps<void> {
  yield { want: "nothing", sql, values };
}

/** Returns the number of rows it changed. */
export function* change(sql: string, ...values: Value[]): Steps<number> {
  return (yield { want: "changes", sql, values }) as number;
}

/** Runs a SELECT for each of the tuples, in their order. */
export function* rowEach<Row>(
  sql: string,
  types: readonly ColumnType[],
  tuples: readonly (readonly Value[])[],
): Steps<readonly (Row | undefined)[]> {
  if (tuples.length === 0) return [];
  return (yield { want: "row each", sql, types, tuples }) as readonly (Row | undefined)[];
}

/** Runs an `INSERT … VALUES (?, …)` for each of the tuples. */
export function* executeEach(
  sql: string,
  types: readonly ColumnType[],
  tuples: readonly (readonly Value[])[],
): Steps<void> {
  if (tuples.length > 0) yield { want: "nothing each", sql, types, tuples };
}

export const NO_LIMIT = Number.MAX_SAFE_INTEGER;
