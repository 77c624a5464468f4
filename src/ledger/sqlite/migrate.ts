/** Numbered SQL files bring the schema up, one transaction each; the number of the last one is the schema's version. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { ConfigError } from "../../support/errors.ts";
import { migrationsIn } from "../migrations.ts";
import { row } from "./store.ts";

/** `HGLD`: tells a ledger from any other SQLite file. */
const APPLICATION_ID = 0x48474c44;
const FOLDER = join(import.meta.dirname, "migrations");

const migrations = () => migrationsIn(FOLDER);

/** Answers the names of the migrations that were applied. */
export function migrate(db: DatabaseSync, path: string): readonly string[] {
  const version = assertOurs(db, path);
  const due = migrations().filter((migration) => migration.version > version);
  for (const migration of due) {
    db.exec("BEGIN IMMEDIATE");
    try {
      db.exec(readFileSync(join(FOLDER, migration.file), "utf8"));
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${migration.version};`);
      db.exec("COMMIT");
    } catch (thrown) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw thrown;
    }
  }
  return due.map((migration) => migration.file);
}

/** For a reader, which brings nothing up. */
export function assertCurrent(db: DatabaseSync, path: string): void {
  const version = assertOurs(db, path);
  const newest = migrations().at(-1)?.version ?? 0;
  if (version < newest)
    throw otherVersion(path, `has schema ${version}, this Headgate reads ${newest}; start the gateway once`);
}

/** Answers the version of its schema; 0 for an empty file. */
export function assertOurs(db: DatabaseSync, path: string): number {
  const version = pragma(db, "user_version");
  const application = pragma(db, "application_id");
  const tables = row<{ n: number }>(db.prepare("SELECT count(*) AS n FROM sqlite_schema"))?.n ?? 0;
  if (tables > 0 && application !== APPLICATION_ID)
    throw new ConfigError("HG-LEDG-002", {
      operation: "open ledger",
      subject: path,
      message: `${path} is an SQLite file of something else, no ledger`,
    });
  const newest = migrations().at(-1)?.version ?? 0;
  if (version > newest)
    throw otherVersion(path, `has schema ${version}, newer than ${newest}, which this Headgate knows`);
  return version;
}

function otherVersion(path: string, words: string): ConfigError {
  return new ConfigError("HG-LEDG-003", {
    operation: "open ledger",
    subject: path,
    message: `the ledger ${path} ${words}`,
  });
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}
