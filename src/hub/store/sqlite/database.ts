/**
 * Opens SQLite files: migrations, durability, and waiting for the other writer without blocking the event
 * loop.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { ConfigError, type HeadgateError, wordsOf } from "#core/errors.ts";
import { createPrivateFile, PRIVATE_FOLDER } from "#core/private-files.ts";
import { type ProcessLock, takeProcessLock } from "#core/sql/process-lock.ts";
import { isBusy } from "#core/sql/sqlite/faults.ts";
import { migrate, type SqliteSchema } from "#core/sql/sqlite/migrate.ts";
import { startFault } from "#core/start-fault.ts";
import { otherStore } from "../database.ts";
import { installTextFunctions } from "./dialect.ts";

const BUSY_WAIT_MS = 5;
const BUSY_WAITS_MAX = 12_000;

export type Row = Record<string, null | number | bigint | string | Uint8Array>;

export interface OpenOptions {
  readonly path: string;
  /**
   * Folder of numbered SQL files beside this one; null when another connection has brought the file up to
   * date.
   */
  readonly migrations: "migrations" | "intake-migrations" | null;
  /** How long a call may block its thread for the other writer. */
  readonly timeoutMs: number;
  readonly readOnly?: boolean;
  /** Pages kept in memory. */
  readonly cacheMegabytes?: number;
  /** Pages of the log (4 KB each) at which a commit checkpoints them into the file. */
  readonly checkpointPages?: number;
}

/**
 * WAL, and every commit fsynced: work that was acknowledged or dropped after a commit must not be undone by a
 * power cut.
 */
export function openDatabase(options: OpenOptions): DatabaseSync {
  const { path, migrations, timeoutMs, readOnly = false, cacheMegabytes = 32, checkpointPages = 4_000 } = options;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
    if (!readOnly) createPrivateFile(path);
    const database = new DatabaseSync(path, { timeout: timeoutMs, readOnly });
    if (!readOnly) database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    database.exec(
      `PRAGMA foreign_keys = ON; PRAGMA cache_size = -${cacheMegabytes * 1_000};
        PRAGMA wal_autocheckpoint = ${checkpointPages}`,
    );
    installTextFunctions(database);
    if (migrations !== null) migrate(database, schemaIn(migrations), path);
    return database;
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw thrown;
    throw cannotOpen(path, thrown);
  }
}

function schemaIn(folder: "migrations" | "intake-migrations"): SqliteSchema {
  return {
    folder: join(import.meta.dirname, folder),
    table: "migration",
    applicationId: null,
    foreign: null,
    otherVersion: otherStore,
  };
}

export function cannotOpen(path: string, cause: unknown): HeadgateError {
  return startFault("HG-HUB-001", {
    operation: "open store",
    subject: path,
    message: `the store of the hub cannot be opened: ${wordsOf(cause)}`,
    cause,
  });
}

/** Only one hub at a time owns a store. */
export function lockStore(path: string): ProcessLock {
  let lock: ProcessLock | null;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
    lock = takeProcessLock(`${path}.lock`);
  } catch (thrown) {
    throw cannotOpen(path, thrown);
  }
  if (lock === null) throw new ConfigError("HG-HUB-003", { operation: "open store", subject: path });
  return lock;
}

/**
 * One write transaction; waits for the writer of points between attempts, without blocking the event loop.
 */
export async function write<T>(database: DatabaseSync, work: () => T): Promise<T> {
  for (let waits = 0; ; waits += 1) {
    try {
      database.exec("BEGIN IMMEDIATE");
      break;
    } catch (thrown) {
      if (!isBusy(thrown) || waits >= BUSY_WAITS_MAX) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, BUSY_WAIT_MS));
    }
  }
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (thrown) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw thrown;
  }
}

/** Clients write filters, so the number of different texts is unlimited. */
const STATEMENTS_MAX = 500;

/** Caches a prepared statement for each text. */
export function statements(database: DatabaseSync) {
  const prepared = new Map<string, ReturnType<DatabaseSync["prepare"]>>();
  const statement = (sql: string, asArrays = false) => {
    const key = asArrays ? `arrays: ${sql}` : sql;
    const known = prepared.get(key);
    if (known !== undefined) {
      // The order of use counts only where there are many texts.
      if (prepared.size < STATEMENTS_MAX / 2) return known;
      prepared.delete(key);
      prepared.set(key, known);
      return known;
    }
    const made = database.prepare(sql);
    if (asArrays) made.setReturnArrays(true);
    const [oldest] = prepared.keys();
    if (prepared.size >= STATEMENTS_MAX && oldest !== undefined) prepared.delete(oldest);
    prepared.set(key, made);
    return made;
  };
  return {
    get: (sql: string, ...values: SQLInputValue[]) => statement(sql).get(...values) as Row | undefined,
    all: (sql: string, ...values: SQLInputValue[]) => statement(sql).all(...values) as Row[],
    /** Rows as arrays, which cost half as much as objects. */
    arrays: (sql: string, ...values: SQLInputValue[]) =>
      statement(sql, true).all(...values) as unknown as Row[string][][],
    run: (sql: string, ...values: SQLInputValue[]) => {
      const { changes, lastInsertRowid } = statement(sql).run(...values);
      return { changes: Number(changes), id: Number(lastInsertRowid) };
    },
  };
}
export type Statements = ReturnType<typeof statements>;
