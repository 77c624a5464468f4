/**
 * Copies of a ledger: a consistent one while its owner continues to write, and one that replaces the ledger.
 */
import { chmodSync, copyFileSync, existsSync, linkSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Clock, isoInstant } from "#core/clock.ts";
import { publishDurably, syncDirectory, syncFile } from "#core/durable.ts";
import { ConfigError, HeadgateError } from "#core/errors.ts";
import { PRIVATE_FILE } from "#core/private-files.ts";
import { stateOf } from "#core/sql/sqlite/migrate.ts";
import type { IsoInstant } from "../../model.ts";
import { claim, LEDGER_SCHEMA } from "./open.ts";
import { openFault, row } from "./store.ts";

/** The facts of a copy. */
export interface LedgerCopy {
  readonly path: string;
  readonly runs: number;
  /** Time of its last write; null for an empty ledger. */
  readonly upTo: IsoInstant | null;
}

export interface Restored {
  readonly restored: LedgerCopy;
  /** The former ledger, which is kept beside; null when there was none. */
  readonly replaced: LedgerCopy | null;
}

const BUSY_TIMEOUT_MS = 5_000;
/** Suffixes of the files that SQLite keeps beside a database until it is closed. */
const LOGS = ["-wal", "-shm"];

/** Also beside a running owner. `ConfigError` when the file exists, or the ledger is damaged. */
export async function backupSqliteLedger(ledgerPath: string, to: string): Promise<LedgerCopy> {
  const [from, path] = [resolve(ledgerPath), resolve(to)];
  if (existsSync(path))
    throw new ConfigError("HG-LEDG-002", {
      operation: "back up ledger",
      subject: path,
      message: `${path} exists already; it was not changed`,
      hint: "Name another file.",
    });
  const part = `${path}.part`;
  try {
    rmSync(part, { force: true });
    reading(from, (db) => db.prepare("VACUUM INTO ?").run(part));
    chmodSync(part, PRIVATE_FILE);
    const copy = inspect(part);
    await syncFile(part);
    await publishDurably(part, path);
    return { ...copy, path };
  } catch (thrown) {
    rmSync(part, { force: true });
    throw thrown instanceof HeadgateError ? thrown : openFault(path, thrown);
  }
}

/**
 * `ConfigError`, and nothing was changed, while another process owns the ledger (`HG-LEDG-001`), or when the
 * copy is not a ledger, of another version, or damaged.
 */
export async function restoreSqliteLedger(ledgerPath: string, copy: string, clock: Clock): Promise<Restored> {
  const path = resolve(ledgerPath);
  const restored = inspect(resolve(copy));
  const lock = claim(path);
  try {
    const part = `${path}.part`;
    rmSync(part, { force: true });
    reading(resolve(copy), (db) => db.prepare("VACUUM INTO ?").run(part));
    chmodSync(part, PRIVATE_FILE);
    await syncFile(part);
    const replaced = await keepBeside(path, clock);
    // A ledger exists at every moment: an empty one would treat every file at the drops as new.
    await publishDurably(part, path);
    return { restored, replaced };
  } catch (thrown) {
    throw thrown instanceof HeadgateError ? thrown : openFault(path, thrown);
  } finally {
    lock.release();
  }
}

async function keepBeside(path: string, clock: Clock): Promise<LedgerCopy | null> {
  const beside = `${path}.replaced-${isoInstant(clock.now()).replaceAll(/[:.]/g, "-")}`;
  const facts = closedFacts(path);
  linkSync(path, beside);
  for (const log of LOGS) {
    if (!existsSync(`${path}${log}`)) continue;
    // The old ledger could not be opened to merge its log.
    copyFileSync(`${path}${log}`, `${beside}${log}`);
    rmSync(`${path}${log}`);
  }
  await syncDirectory(dirname(path));
  if (facts === "empty") {
    rmSync(beside);
    return null;
  }
  return { runs: 0, upTo: null, ...facts, path: beside };
}

/** Merges the write-ahead log, so that the single file is the ledger. A damaged ledger is kept as it is. */
function closedFacts(path: string): Omit<LedgerCopy, "path"> | "empty" | null {
  try {
    const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    try {
      if (stateOf(db, LEDGER_SCHEMA, path).version === 0) return "empty";
      db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      return factsOf(db);
    } finally {
      db.close();
    }
  } catch {
    // Damaged, which is why a backup replaces it.
    return null;
  }
}

/** `ConfigError` when it is not a ledger, one of another version, or damaged. */
function inspect(path: string): LedgerCopy {
  if (!existsSync(path))
    throw new ConfigError("HG-LEDG-002", {
      operation: "read ledger",
      subject: path,
      message: `there is no file ${path}`,
    });
  return reading(path, (db) => {
    if (stateOf(db, LEDGER_SCHEMA, path).version === 0)
      throw new ConfigError("HG-LEDG-002", {
        operation: "read ledger",
        subject: path,
        message: `${path} is not a ledger`,
      });
    const found = row<{ integrity_check: string }>(db.prepare("PRAGMA integrity_check(1)"));
    if (found?.integrity_check !== "ok")
      throw new ConfigError("HG-LEDG-007", {
        operation: "read ledger",
        subject: path,
        message: `${path} is damaged: ${found?.integrity_check ?? "it cannot be checked"}`,
      });
    return { path, ...factsOf(db) };
  });
}

function factsOf(db: DatabaseSync): Omit<LedgerCopy, "path"> {
  return {
    runs: row<{ n: number }>(db.prepare("SELECT count(*) AS n FROM runs"))?.n ?? 0,
    upTo: row<{ at: string | null }>(db.prepare("SELECT max(at) AS at FROM events"))?.at ?? null,
  };
}

function reading<T>(path: string, work: (db: DatabaseSync) => T): T {
  let db: DatabaseSync;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  } catch (cause) {
    throw openFault(path, cause);
  }
  try {
    return work(db);
  } catch (thrown) {
    throw thrown instanceof HeadgateError ? thrown : openFault(path, thrown);
  } finally {
    db.close();
  }
}
