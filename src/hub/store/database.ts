/**
 * What the statements of the store are written against where both databases agree, so that they are written once. A
 * piece of work is a generator that yields statements and receives their answers; each database drives it, SQLite at
 * once and PostgreSQL over the network.
 */
import type { OneStatement } from "../../sql/statements.ts";
import type { SqlDialect, SqlValue } from "./filter-sql.ts";
import type { Page } from "./store.ts";
import type { Where } from "./where.ts";

export type Row = Readonly<Record<string, unknown>>;
export interface Statement extends OneStatement<SqlValue> {
  readonly want: "row" | "rows" | "changes";
}
/** It may be done again from its beginning. */
export type Steps<T> = Generator<Statement, T, unknown>;

export interface Selection {
  readonly columns: string;
  readonly from: string;
  readonly order: string;
}

/** What the databases say differently. */
export interface StoreDialect extends SqlDialect {
  /** The table of people: its plain name is a keyword of PostgreSQL. */
  readonly users: string;
  /** Tables that have a row for each account beside `account`. */
  readonly accountTables: readonly string[];
  /** After a SELECT: the rows of a table stay as they are until the transaction ends. */
  readonly forUpdate: (table: string) => string;
  /** After a SELECT: the rows stay until the transaction ends. */
  readonly forKeyShare: string;
  /** Rows of one page and the number of all, of one moment. */
  page(
    select: Selection,
    where: Where,
    page: Page,
  ): Steps<{ readonly rows: readonly Row[]; readonly total: number }>;
  /** Inside a write: writers of points forget what they remember of the account's targets. */
  noteChange(accountId: number): Steps<void>;
  /** Inside a write: waits for the writer of the account's points, and keeps it waiting until the transaction ends. */
  holdLane(accountId: number): Steps<void>;
  /** The same for the account of a variable. */
  holdVariable(variableId: number): Steps<void>;
}

export interface Database {
  readonly dialect: StoreDialect;
  /** Statements that change nothing. */
  ask<T>(work: () => Steps<T>): Promise<T>;
  /** One statement by itself; answers how many rows it changed. */
  run(sql: string, ...values: SqlValue[]): Promise<number>;
  /** One transaction. */
  write<T>(work: () => Steps<T>): Promise<T>;
}

export function* row(sql: string, ...values: SqlValue[]): Steps<Row | undefined> {
  return (yield { want: "row", sql, values }) as Row | undefined;
}

export function* rows(sql: string, ...values: SqlValue[]): Steps<readonly Row[]> {
  return (yield { want: "rows", sql, values }) as readonly Row[];
}

/** Answers how many rows it changed. */
export function* change(sql: string, ...values: SqlValue[]): Steps<number> {
  return (yield { want: "changes", sql, values }) as number;
}

/** Inside a write. Answers the id. */
export function* insert(
  table: string,
  columns: Readonly<Record<string, SqlValue | undefined>>,
): Steps<number> {
  const names = Object.keys(columns);
  const places = names.map(() => "?").join(", ");
  const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places}) RETURNING id`;
  const added = yield* row(sql, ...Object.values(columns).map((value) => value ?? null));
  return Number(added?.["id"]);
}

/** Inside a write. */
export function* update(
  table: string,
  id: number,
  columns: Readonly<Record<string, SqlValue | undefined>>,
): Steps<void> {
  const sets = Object.keys(columns).map((name) => `${name} = ?`);
  const values = Object.values(columns).map((value) => value ?? null);
  yield* change(`UPDATE ${table} SET ${sets.join(", ")} WHERE id = ?`, ...values, id);
}
