/**
 * A lock between processes: an exclusive transaction held open on a tiny database. The operating system releases it
 * when the process ends, however it ends; the file stays.
 */
import { DatabaseSync } from "node:sqlite";
import { createPrivateFile } from "../support/private-files.ts";
import { isBusy } from "./sqlite/faults.ts";

export interface ProcessLock {
  release(): void;
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
