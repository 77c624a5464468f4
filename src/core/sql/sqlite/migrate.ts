/** Brings an SQLite file up to date, one transaction for each migration. */
import type { DatabaseSync } from "node:sqlite";
import {
  assertNothingDue,
  type Migration,
  type MigrationRecord,
  recordTable,
  type Schema,
  type SchemaState,
  stateFrom,
} from "../migrations.ts";

export interface SqliteSchema extends Schema {
  /** Distinguishes the files of this schema from others; null: its files carry no mark. */
  readonly applicationId: number | null;
}

/** Returns the names of the migrations that were applied. */
export function migrate(db: DatabaseSync, schema: SqliteSchema, path: string): readonly string[] {
  const { due } = stateOf(db, schema, path);
  for (const migration of due) apply(db, schema, migration);
  return due.map(({ file }) => file);
}

function apply(db: DatabaseSync, schema: SqliteSchema, { version, file, sql, digest }: Migration): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec(`${sql}\n; ${recordTable(schema)}`);
    db.prepare(`INSERT INTO ${schema.table} (version, file, digest) VALUES (?, ?, ?)`).run(version, file, digest);
    if (schema.applicationId !== null) db.exec(`PRAGMA application_id = ${schema.applicationId}`);
    db.exec("COMMIT");
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw thrown;
  }
}

/** For a reader, which does not migrate. */
export function assertCurrent(db: DatabaseSync, schema: SqliteSchema, path: string): void {
  assertNothingDue(schema, stateOf(db, schema, path), path);
}

export function stateOf(db: DatabaseSync, schema: SqliteSchema, path: string): SchemaState {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  if (tables.length === 0) return stateFrom(schema, [], path);
  const isMarked = schema.applicationId === null || applicationIdOf(db) === schema.applicationId;
  if (!isMarked && schema.foreign !== null) throw schema.foreign(path);
  const records = tables.some(({ name }) => name === schema.table)
    ? db.prepare(`SELECT version, digest FROM ${schema.table} ORDER BY version`).all()
    : [{ version: 1, digest: null }];
  return stateFrom(schema, records as unknown as readonly MigrationRecord[], path);
}

function applicationIdOf(db: DatabaseSync): unknown {
  return db.prepare("PRAGMA application_id").get()?.["application_id"];
}
