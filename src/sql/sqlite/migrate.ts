/**
 * Brings an SQLite file up to date, one transaction for each migration; `user_version` is the number of the last one.
 */
import type { DatabaseSync } from "node:sqlite";
import { areOutdated, assertNothingDue, DERIVED, type Definition, dueFor, type Schema, textOf } from "../migrations.ts";

export interface SqliteSchema extends Schema {
  /** Distinguishes the files of this schema from others; null: its files carry no mark. */
  readonly applicationId: number | null;
}

/** Returns the names of the migrations that were applied. */
export function migrate(db: DatabaseSync, schema: SqliteSchema, path: string): readonly string[] {
  const due = dueFor(schema, assertOurs(db, schema, path), path);
  const mark = schema.applicationId === null ? "" : `PRAGMA application_id = ${schema.applicationId};`;
  for (const migration of due)
    perform(db, `${textOf(schema, migration)}\n; ${mark} PRAGMA user_version = ${migration.version}`);
  const isOutdated = areOutdated(schema, definitions(db, schema), path);
  if (isOutdated) perform(db, schema.derived?.makeAgain ?? "");
  return [...due.map(({ file }) => file), ...(isOutdated ? [DERIVED] : [])];
}

function perform(db: DatabaseSync, sql: string): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec(sql);
    db.exec("COMMIT");
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw thrown;
  }
}

function definitions(db: DatabaseSync, { derived }: Schema): readonly Definition[] {
  return derived === undefined ? [] : (db.prepare(derived.definitions).all() as unknown as readonly Definition[]);
}

/** For a reader, which does not migrate. */
export function assertCurrent(db: DatabaseSync, schema: SqliteSchema, path: string): void {
  assertNothingDue(schema, assertOurs(db, schema, path), definitions(db, schema), path);
}

/** Returns the version of its schema; 0 for an empty file. */
export function assertOurs(db: DatabaseSync, schema: SqliteSchema, path: string): number {
  const version = pragma(db, "user_version");
  const isMarked = schema.applicationId === null || pragma(db, "application_id") === schema.applicationId;
  const tables = Number(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.["n"] ?? 0);
  if (!isMarked && tables > 0 && schema.foreign !== null) throw schema.foreign(path);
  dueFor(schema, version, path);
  return version;
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}
