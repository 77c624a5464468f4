/**
 * What the statements of a ledger are written against, so that they are written once: they run on SQLite, which answers at once,
 * and on PostgreSQL, which answers over a network. A piece of work is a generator that yields statements and is given what they
 * answer; the store of each database drives it. Text is SQL that both understand, with `?` for values in their order; where they
 * differ, it is put together by the `Dialect`.
 */
import type { Arrival, IsoInstant, LedgerEvent } from "../../model.ts";
import type { Clock } from "../../support/clock.ts";
import type { LedgerFault } from "../ledger.ts";

export type Value = string | number | bigint | null;

/** Types of columns, for statements that take many tuples at once. */
export type ColumnType = "text" | "bigint";

export interface OneStatement {
  /**
   * `cells`: rows as arrays, which cost a part of the memory of objects. `nothing`: the work goes on before the statement was
   * answered, so that a network is not waited for; it fails with the whole work.
   */
  readonly want: "row" | "rows" | "cells" | "changes" | "nothing";
  readonly sql: string;
  readonly values: readonly Value[];
}

/** The same statement for each tuple; `row each` answers the first row of each as an array, or undefined. */
export interface EachStatement {
  readonly want: "row each" | "nothing each";
  readonly sql: string;
  readonly types: readonly ColumnType[];
  readonly tuples: readonly (readonly Value[])[];
}

export type Statement = OneStatement | EachStatement;

/** A piece of work on the ledger. What it answers counts only when it came to its end. It may be done again from its beginning. */
export type Steps<T> = Generator<Statement, T, unknown>;

/** The file that an event is about. */
export type EventFile = Pick<Arrival, "drop" | "path">;

/** An event that is not told yet. */
export interface Announced {
  readonly event: LedgerEvent;
  readonly file: EventFile | undefined;
}

export interface Store {
  readonly clock: Clock;
  readonly dialect: Dialect;
  now(): IsoInstant;
  /** Greater than that of every run before it. */
  nextRunId(): Steps<string>;
  /** The fence of this node: what begins under one fence must not go on under another. Null for who is none, and a lone owner. */
  readonly session: number | null;
  /** Inside a write: fails with `HG-LEDG-010` while another node works on the run. */
  assertRun(id: string): Steps<void>;
  /** Inside a write: fails with `HG-LEDG-010` unless the session polls the drop. */
  assertDrop(drop: string, session: number | null): Steps<void>;
  /** A condition on `runs`: this node may work on them. */
  ours(): { readonly where: string; readonly values: readonly Value[] };
  /** Tells the observer of an event, once the transaction is committed. The file is looked up when it is not given. */
  announce(event: LedgerEvent, file?: EventFile): void;
  /** One statement, or several that need not see one state. */
  look<T>(work: () => Steps<T>): Promise<T>;
  /** Several reads of one state of the ledger. */
  read<T>(work: () => Steps<T>): Promise<T>;
  /** One transaction. `what` names the fault points `ledger.<what>.before` and `.after` the commit. */
  write<T>(what: string | readonly string[], work: () => Steps<T>): Promise<T>;
}

/** What the databases say differently. Each text takes the values that its `?` show. */
export interface Dialect {
  /** `column` is one of the texts of a JSON array, which is the one value. */
  among(column: string): string;
  /** Insists on an index, where the planner can be told. */
  indexedBy(index: string): string;
  /** A field of a column that holds a JSON object, as text. */
  jsonField(column: string, field: string): string;
  /** All values of a column as one JSON array. */
  jsonArray(column: string): string;
  contains(column: string): string;
  /** Takes the end twice. */
  endsWith(expression: string): string;
  /** What the database itself finds broken in its files. */
  damage(most: number): Steps<readonly LedgerFault[]>;
}

/** A text that is put together once for each dialect, and not each time that it is asked. */
export function perDialect(build: (dialect: Dialect) => string): (store: Store) => string {
  const texts = new WeakMap<Dialect, string>();
  return ({ dialect }) => {
    const text = texts.get(dialect) ?? build(dialect);
    texts.set(dialect, text);
    return text;
  };
}

export function* row<Row>(sql: string, ...values: Value[]): Steps<Row | undefined> {
  return (yield { want: "row", sql, values }) as Row | undefined;
}

export function* rows<Row>(sql: string, ...values: Value[]): Steps<readonly Row[]> {
  return (yield { want: "rows", sql, values }) as readonly Row[];
}

export function* cells<Row extends readonly unknown[]>(
  sql: string,
  ...values: Value[]
): Steps<readonly Row[]> {
  return (yield { want: "cells", sql, values }) as readonly Row[];
}

export function* execute(sql: string, ...values: Value[]): Steps<void> {
  yield { want: "nothing", sql, values };
}

/** Answers how many rows it changed. */
export function* change(sql: string, ...values: Value[]): Steps<number> {
  return (yield { want: "changes", sql, values }) as number;
}

/** A SELECT for each of the tuples, in their order. */
export function* rowEach<Row>(
  sql: string,
  types: readonly ColumnType[],
  tuples: readonly (readonly Value[])[],
): Steps<readonly (Row | undefined)[]> {
  if (tuples.length === 0) return [];
  return (yield { want: "row each", sql, types, tuples }) as readonly (Row | undefined)[];
}

/** An `INSERT … VALUES (?, …)` for each of the tuples. */
export function* executeEach(
  sql: string,
  types: readonly ColumnType[],
  tuples: readonly (readonly Value[])[],
): Steps<void> {
  if (tuples.length > 0) yield { want: "nothing each", sql, types, tuples };
}

export const NO_LIMIT = Number.MAX_SAFE_INTEGER;
