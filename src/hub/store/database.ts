/**
 * Statements of the store that are the same in both databases. A unit of work is a generator that yields
 * statements and receives their results; each database drives it, SQLite at once and PostgreSQL over the
 * network.
 */

import { ConfigError } from "#core/errors.ts";
import type { OneStatement } from "#core/sql/statements.ts";
import type { SqlDialect, SqlValue } from "./filter-sql.ts";
import type { Listing, Page } from "./records.ts";
import type { Where } from "./where.ts";

export type Row = Readonly<Record<string, unknown>>;
export interface Statement extends OneStatement<SqlValue> {
  readonly want: "row" | "rows" | "changes";
}
/** It may be repeated from its beginning. */
export type Steps<T> = Generator<Statement, T, unknown>;

export interface Selection {
  readonly columns: string;
  readonly from: string;
  readonly order: string;
}

/** The SQL that differs between the databases. */
export interface StoreDialect extends SqlDialect {
  /** Tables that have a row for each account beside `account`. */
  readonly accountTables: readonly string[];
  readonly search: SearchDialect;
  /**
   * A number that grows whenever readings of the account are stored, in a SELECT of its row of `structure_change`.
   */
  readonly written: string;
  /** Suffix of a SELECT: the rows of a table stay unchanged until the transaction ends. */
  readonly forUpdate: (table: string) => string;
  /** Suffix of a SELECT: the rows are not deleted until the transaction ends. */
  readonly forKeyShare: string;
  /** Rows of one page and the number of all, in one snapshot. */
  page(select: Selection, where: Where, page: Page): Steps<{ readonly rows: readonly Row[]; readonly total: number }>;
  /**
   * For use inside a write: waits for the writer of the account's points, and blocks it until the transaction
   * ends.
   */
  holdLane(accountId: number): Steps<void>;
  /** The same without waiting; false: another transaction holds it, and nothing was locked. */
  tryLane(accountId: number): Steps<boolean>;
  /** As `holdLane`, for the account of a variable. */
  holdVariable(variableId: number): Steps<void>;
}

export interface Database {
  readonly dialect: StoreDialect;
  /** Runs statements that change nothing. */
  ask<T>(work: () => Steps<T>): Promise<T>;
  /**
   * As `ask`, for conditions that clients write, without holding up other requests for long: accounts take turns, and a
   * statement has its time, beyond which `LongFilter` is thrown.
   */
  askApart<T>(accountId: number, work: () => Steps<T>): Promise<T>;
  /** As `ask`; all of them see the store at one moment. */
  snapshot<T>(work: () => Steps<T>): Promise<T>;
  /** Runs one statement by itself; returns the number of rows it changed. */
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

/** Returns the number of rows it changed. */
export function* change(sql: string, ...values: SqlValue[]): Steps<number> {
  return (yield { want: "changes", sql, values }) as number;
}

/** For use inside a write. Returns the id. */
export function* insert(table: string, columns: Readonly<Record<string, SqlValue | undefined>>): Steps<number> {
  const names = Object.keys(columns);
  const places = names.map(() => "?").join(", ");
  const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places}) RETURNING id`;
  const added = yield* row(sql, ...Object.values(columns).map((value) => value ?? null));
  return Number(added?.["id"]);
}

/** For use inside a write. */
export function* update(
  table: string,
  id: number,
  columns: Readonly<Record<string, SqlValue | undefined>>,
): Steps<void> {
  const sets = Object.keys(columns).map((name) => `${name} = ?`);
  const values = Object.values(columns).map((value) => value ?? null);
  yield* change(`UPDATE ${table} SET ${sets.join(", ")} WHERE id = ?`, ...values, id);
}

/** Its `ask` is `askApart` for the account, where one of the filters is given, which no index serves. */
export function apartFor(database: Database, accountId: number, filters: readonly unknown[]): Database {
  if (filters.every((filter) => filter == null)) return database;
  return { ...database, ask: (work) => database.askApart(accountId, work) };
}

/** One page of the rows that fit a condition, and the number of all. */
export async function listed<Item>(
  { ask, dialect }: Database,
  select: Selection,
  where: Where,
  page: Page,
  itemOf: (row: Row) => Item,
): Promise<Listing<Item>> {
  const { rows: found, total } = await ask(() => dialect.page(select, where, page));
  return { rows: found.map(itemOf), total };
}

/** Errors for a database that cannot be opened as the store of the hub. */
export function otherStore(subject: string, words: string): ConfigError {
  const message = `the store of the hub ${subject} ${words}`;
  return new ConfigError("HG-HUB-002", { operation: "open store", subject, message });
}

export type SearchedTable = "site" | "source" | "variable";

/** The SQL of a search. */
export interface SearchDialect {
  /** A condition on the row of the table, whose one parameter is the question. */
  readonly found: (table: SearchedTable) => string;
  /** `isWhole`: the last token of a word is no beginning. */
  readonly question: (accountId: number, words: readonly SearchWord[], isWhole: boolean) => string;
}

/** A word of a person: all of its tokens, the last of which may be a beginning, or one of the units that it names. */
export interface SearchWord {
  /** Letters and digits alone. */
  readonly tokens: readonly string[];
  readonly unitIds: readonly number[];
}
