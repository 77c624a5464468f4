/**
 * Syncs the write-ahead log of SQLite beside the event loop. SQLite itself would sync at each commit and keep everybody waiting
 * for the disk; here it syncs at checkpoints alone (`synchronous = NORMAL`), and what was committed is told when this sync has
 * covered it. Meanwhile the next group gathers. The log only grows at its end, so that a sync covers all that was committed before it.
 */
import { closeSync, constants, fdatasync, fdatasyncSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";

export class LogSync {
  readonly #db: DatabaseSync;
  readonly #path: string;
  #file: number | null = null;
  #underWay = false;
  #closed = false;
  /** What a failed sync covered may be lost though a later one succeeds, so from then on a checkpoint has to bring it to the disk. */
  #distrusted = false;

  constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.#path = path;
  }

  /** One at a time. `done` hears what went wrong, or null when all that was committed before this call is on the disk. */
  begin(done: (fault: unknown) => void): void {
    if (this.#distrusted) {
      setImmediate(() => done(this.#checkpoint()));
      return;
    }
    let file: number;
    try {
      file = this.#open();
    } catch (thrown) {
      setImmediate(() => done(thrown));
      return;
    }
    this.#underWay = true;
    fdatasync(file, (fault) => {
      this.#underWay = false;
      if (this.#closed) closeSync(file);
      if (fault !== null) this.#distrusted = true;
      done(fault === null || this.#closed ? fault : this.#checkpoint());
    });
  }

  /** The same, at once. */
  now(): void {
    if (!this.#distrusted) {
      try {
        fdatasyncSync(this.#open());
        return;
      } catch {
        // The checkpoint tells what is wrong, if it cannot bring it to the disk either.
        this.#distrusted = true;
      }
    }
    const fault = this.#checkpoint();
    if (fault !== null) throw fault;
  }

  close(): void {
    this.#closed = true;
    // Its number must not become another file's while it is still synced.
    if (this.#file !== null && !this.#underWay) closeSync(this.#file);
    this.#file = null;
  }

  #open(): number {
    if (this.#file === null) {
      // The log has no locks that closing it could take away, and it stays the same file while the database is open.
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
      const told = this.#db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
      if (told?.["busy"] !== 0)
        return new Error("the log of the ledger cannot be brought into it: a reader keeps it");
      this.#distrusted = false;
      return null;
    } catch (thrown) {
      return thrown;
    }
  }
}
