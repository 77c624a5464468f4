/**
 * The lock of the ledger's owner: an exclusive transaction held open on a small database beside it. The operating system
 * lets go of it when the process ends, however it ends.
 */
import { DatabaseSync } from "node:sqlite";
import { ConfigError } from "../../support/errors.ts";
import { openFault, sqliteCode } from "./faults.ts";

const BUSY = 5;

export interface OwnerLock {
  release(): void;
}

export function takeOwnerLock(ledgerPath: string): OwnerLock {
  const path = `${ledgerPath}.lock`;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { timeout: 0 });
    db.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    db?.close();
    if (sqliteCode(cause) !== BUSY) throw openFault(path, cause);
    throw new ConfigError("HG-LEDG-001", {
      operation: "open ledger",
      subject: ledgerPath,
      message: `the ledger ${ledgerPath} is in use by another process`,
    });
  }
  const held = db;
  return {
    release: () => {
      if (held.isOpen) held.close();
    },
  };
}
