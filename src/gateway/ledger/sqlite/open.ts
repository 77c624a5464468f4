/**
 * The ledger in one SQLite file: write-ahead log, synced before a commit is reported, owned by one process at
 * a time.
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { syncDirectory } from "#core/durable.ts";
import { ConfigError, HeadgateError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { createPrivateFile, PRIVATE_FOLDER } from "#core/private-files.ts";
import type { ProcessLock } from "#core/sql/process-lock.ts";
import { assertCurrent, migrate } from "#core/sql/sqlite/migrate.ts";
import { type Fleet, LONE_NODE } from "../fleet.ts";
import type { Ledger } from "../ledger.ts";
import type { LedgerMeans } from "../means.ts";
import { ledgerMethods } from "../records/methods.ts";
import { harmless } from "../records/observers.ts";
import { openFault } from "./faults.ts";
import { aloneBeside, takeOwnerLock } from "./lock.ts";
import { LEDGER_SCHEMA } from "./schema.ts";
import { SqliteStore } from "./store.ts";

export type SqliteLedgerMeans = Omit<LedgerMeans, "watch"> & { readonly path: string };

/** How long a statement waits for another process, such as a reader that checkpoints. */
const BUSY_TIMEOUT_MS = 5_000;
/**
 * For the pages of the live runs and of the ends of the indexes; with less they are read from the log
 * repeatedly.
 */
const CACHE_KB = 16_384;
/**
 * Pages in the log before a commit copies them to the file: 64 MB. The event loop waits for that, and each page that
 * many commits changed is copied once.
 */
const LOG_PAGES = 16_000;

/** `ConfigError` when it is in use (`HG-LEDG-001`), cannot be opened (`-002`) or is of another version (`-003`). */
export async function openSqliteLedger(means: SqliteLedgerMeans): Promise<Ledger> {
  const path = resolve(means.path);
  if (means.readOnly === true)
    return assemble(new SqliteStore(openToRead(path), path, means.clock, true), aloneBeside(path, means.clock), null);
  const lock = claim(path);
  try {
    const db = openToWrite(path, means.log);
    await syncDirectory(dirname(path));
    const store = new SqliteStore(db, path, means.clock, false, harmless(means));
    return assemble(store, aloneBeside(path, means.clock), lock);
  } catch (thrown) {
    lock.release();
    throw thrown;
  }
}

/** Takes the lock of the owner; the folder and the file are created when they are missing. */
export function claim(path: string): ProcessLock {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
    createPrivateFile(path);
  } catch (cause) {
    throw openFault(path, cause);
  }
  return takeOwnerLock(path);
}

function openToWrite(path: string, log: Logger | undefined): DatabaseSync {
  const db = connect(path, false);
  try {
    // The store syncs the log; SQLite itself syncs before a checkpoint, which is less often. Migrations that a crash
    // takes back are applied again: the first sync after them includes theirs.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;");
    const applied = migrate(db, LEDGER_SCHEMA, path);
    if (applied.length > 0) log?.info({ path, migrations: applied }, "the ledger's schema was brought up");
    db.exec(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}; PRAGMA cache_size = -${CACHE_KB};`);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown instanceof HeadgateError ? thrown : openFault(path, thrown);
  }
}

function openToRead(path: string): DatabaseSync {
  if (!existsSync(path))
    throw new ConfigError("HG-LEDG-002", {
      operation: "open ledger",
      subject: path,
      message: `there is no ledger at ${path} yet`,
      hint: "Start the gateway once, or check `ledger.path`.",
    });
  const db = connect(path, true);
  try {
    assertCurrent(db, LEDGER_SCHEMA, path);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown instanceof HeadgateError ? thrown : openFault(path, thrown);
  }
}

function connect(path: string, readOnly: boolean): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly, timeout: BUSY_TIMEOUT_MS });
  } catch (cause) {
    throw openFault(path, cause);
  }
}

function assemble(store: SqliteStore, alone: Fleet["alone"], lock: ProcessLock | null): Ledger {
  return {
    fleet: { ...LONE_NODE, alone },
    shared: null,
    ...ledgerMethods(store),
    close: async () => {
      try {
        await store.close();
      } finally {
        lock?.release();
      }
    },
  };
}
