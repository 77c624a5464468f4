/**
 * Syncs the write-ahead log of SQLite outside the event loop. SQLite itself would sync at each commit and
 * block the process for the disk; here it only syncs at checkpoints (`synchronous = NORMAL`), and a commit is
 * reported when this sync has covered it. Meanwhile the next group accumulates. The log only grows at its
 * end, so a sync covers every commit before it.
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { busy } from "./faults.ts";

export class LogSync {
  readonly #db: DatabaseSync;
  readonly #path: string;
  #file: number | null = null;
  /**
   * Data that a failed sync covered may be lost although a later one succeeds, so from then on a checkpoint
   * has to write it to the disk.
   */
  #distrusted = false;

  constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.#path = path;
  }

  /** Only one at a time. Returns the fault, or null when every commit before this call is on the disk. */
  async run(): Promise<unknown> {
    try {
      if (!this.#distrusted) {
        const file = this.#open();
        const fault = await new Promise((resolve) => fdatasync(file, resolve));
        if (fault === null) return null;
        this.#distrusted = true;
      }
      return this.#checkpoint();
    } catch (thrown) {
      return thrown;
    }
  }

  /** While no sync runs. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #open(): number {
    if (this.#file === null) {
      // Closing the log releases no lock, and it stays the same file while the database is open.
      this.#file = openSync(`${this.#path}-wal`, "r+");
      this.#syncName();
    }
    return this.#file;
  }

  #syncName(): void {
    const folder = openSync(dirname(this.#path), constants.O_RDONLY | (constants.O_DIRECTORY ?? 0));
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  #checkpoint(): unknown {
    try {
      const result = this.#db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
      if (result?.["busy"] !== 0) return busy("the log cannot be merged into the database: another connection uses it");
      this.#distrusted = false;
      return null;
    } catch (thrown) {
      return thrown;
    }
  }
}
