/**
 * The ledger in one SQLite file: write-ahead log, synced before a commit is reported, owned by one process at
 * a time.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Clock } from "#core/clock.ts";
import { syncDirectory } from "#core/durable.ts";
import { ConfigError, HeadgateError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { createPrivateFile, PRIVATE_FOLDER } from "#core/private-files.ts";
import { type ProcessLock, takeProcessLock } from "#core/sql/process-lock.ts";
import { assertCurrent, migrate, type SqliteSchema } from "#core/sql/sqlite/migrate.ts";
import { type Fleet, LONE_NODE, waitForTurn } from "../fleet.ts";
import type { Ledger } from "../ledger.ts";
import { ledgerMethods } from "../records/methods.ts";
import { harmless, type LedgerMeans } from "../records/observers.ts";
import { SCHEMA_VALUES } from "../records/run-indexes.ts";
import { foreignLedger, otherVersion } from "../schema-faults.ts";
import { openFault, SqliteStore } from "./store.ts";

export type SqliteLedgerMeans = Omit<LedgerMeans, "watch"> & { readonly path: string };

/** The schema of a ledger in an SQLite file. */
export const LEDGER_SCHEMA: SqliteSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "ledger_schema",
  values: SCHEMA_VALUES,
  // `HGLD`
  applicationId: 0x48474c44,
  foreign: (path) => foreignLedger(path, `${path} is an SQLite file of something else, not a ledger`),
  otherVersion,
};

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

// The locks beside the ledger: that of its owner, and those of work that only one process at a time may do.

export function ownerLockOf(ledgerPath: string): string {
  return `${ledgerPath}.lock`;
}

/** `ConfigError` HG-LEDG-001 while another process owns the ledger. */
export function takeOwnerLock(ledgerPath: string): ProcessLock {
  const lock = takeLock(ownerLockOf(ledgerPath));
  if (lock !== null) return lock;
  throw new ConfigError("HG-LEDG-001", {
    operation: "open ledger",
    subject: ledgerPath,
    message: `the ledger ${ledgerPath} is in use by another process`,
  });
}

function takeLock(path: string): ProcessLock | null {
  try {
    return takeProcessLock(path);
  } catch (cause) {
    throw openFault(path, cause);
  }
}

/** Commands run beside the owner, so a lock within one process would not suffice. */
export function aloneBeside(ledgerPath: string, clock: Clock): Fleet["alone"] {
  return async (key, work, signal) => {
    const name = createHash("sha256").update(key).digest("hex").slice(0, 10);
    const path = `${ledgerPath}.${name}.lock`;
    const lock = await waitForTurn(() => takeLock(path), key, clock, signal);
    try {
      return await work(signal);
    } finally {
      lock.release();
    }
  };
}
