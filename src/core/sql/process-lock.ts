/**
 * A lock between processes: an exclusive transaction held open on a tiny database. The operating system releases it
 * when the process ends, however it ends; the file stays.
 */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { createPrivateFile } from "../private-files.ts";
import { isBusy } from "./sqlite/faults.ts";

export interface ProcessLock {
  release(): void;
}

/**
 * Whether a process holds the lock. A process that takes it in this moment may be refused, so it is for people who ask
 * now and then.
 */
export function isProcessLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const db = new DatabaseSync(path, { readOnly: true, timeout: 0 });
  try {
    db.exec("SELECT count(*) FROM sqlite_schema");
    return false;
  } catch (thrown) {
    if (isBusy(thrown)) return true;
    throw thrown;
  } finally {
    db.close();
  }
}

/**
 * Returns null while another process holds the lock. Throws SQLite's error when the file cannot be opened or
 * is not a database.
 */
export function takeProcessLock(path: string): ProcessLock | null {
  let db: DatabaseSync | undefined;
  try {
    createPrivateFile(path);
    db = new DatabaseSync(path, { timeout: 0 });
    db.exec("BEGIN EXCLUSIVE");
  } catch (thrown) {
    db?.close();
    if (isBusy(thrown)) return null;
    throw thrown;
  }
  const held = db;
  return {
    release: () => {
      if (held.isOpen) held.close();
    },
  };
}
