/** Copies of a ledger: a consistent one while its owner goes on writing, and one put back in its place. */
import { chmodSync, copyFileSync, existsSync, linkSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { IsoInstant } from "../../model.ts";
import { assertOurs } from "../../sql/sqlite/migrate.ts";
import { type Clock, isoInstant } from "../../support/clock.ts";
import { publishDurably, syncDirectory, syncFile } from "../../support/durable.ts";
import { ConfigError, HeadgateError } from "../../support/errors.ts";
import { PRIVATE_FILE } from "../../support/private-files.ts";
import { openFault } from "./faults.ts";
import { claim } from "./open.ts";
import { LEDGER_SCHEMA } from "./schema.ts";
import { row } from "./store.ts";

/** What a copy holds. */
export interface LedgerCopy {
  readonly path: string;
  readonly runs: number;
  /** When something was last written to it; null for an empty one. */
  readonly upTo: IsoInstant | null;
}

export interface Restored {
  readonly restored: LedgerCopy;
  /** The ledger that was there before, kept beside; null when there was none. */
  readonly replaced: LedgerCopy | null;
}

const BUSY_TIMEOUT_MS = 5_000;
/** What SQLite keeps beside a database until it is closed. */
const LOGS = ["-wal", "-shm"];

/** Also beside a running owner. `ConfigError` when the file exists, or the ledger is not whole. */
export async function backupSqliteLedger(ledgerPath: string, to: string): Promise<LedgerCopy> {
  const [from, path] = [resolve(ledgerPath), resolve(to)];
  if (existsSync(path))
    throw new ConfigError("HG-LEDG-002", {
      operation: "back up ledger",
      subject: path,
      message: `${path} exists already; it was not touched`,
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

/** `ConfigError` while another process owns the ledger (`HG-LEDG-001`), or when the copy is none, newer, or not whole: nothing was changed then. */
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
    // At no moment is there no ledger: an empty one would take everything at the drops for new.
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
    // The old one could not be opened to take them in.
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

/** Takes the write-ahead log in, so that the file alone is the ledger. What is broken is kept as it is. */
function closedFacts(path: string): Omit<LedgerCopy, "path"> | "empty" | null {
  try {
    const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    try {
      if (assertOurs(db, LEDGER_SCHEMA, path) === 0) return "empty";
      db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      return factsOf(db);
    } finally {
      db.close();
    }
  } catch {
    // Damaged, which is why a backup is put in its place.
    return null;
  }
}

/** `ConfigError` when it is no ledger, a newer one, or not whole. */
function inspect(path: string): LedgerCopy {
  if (!existsSync(path))
    throw new ConfigError("HG-LEDG-002", {
      operation: "read ledger",
      subject: path,
      message: `there is no file ${path}`,
    });
  return reading(path, (db) => {
    if (assertOurs(db, LEDGER_SCHEMA, path) === 0)
      throw new ConfigError("HG-LEDG-002", {
        operation: "read ledger",
        subject: path,
        message: `${path} is no ledger`,
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
