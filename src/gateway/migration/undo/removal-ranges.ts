/** The periods that an undo removes, on disk: there may be as many as readings. */
import { rmSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";

/** One call of `DELETE /data`. */
export interface RemovalRange {
  readonly variableId: number;
  /** First and last date, both included, in milliseconds since 1970 in UTC. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Dates, and versions of them, as the service counted them. */
  readonly points: number;
  readonly versions: number;
}

const READ_AT_ONCE = 1_000;

export class RemovalRanges {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #insert: StatementSync;

  /** `path` must not be used by another component. */
  constructor(path: string) {
    this.#path = path;
    rmSync(path, { force: true });
    this.#db = new DatabaseSync(path);
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      CREATE TABLE ranges (
        id INTEGER PRIMARY KEY, variableId INTEGER, fromMs INTEGER, toMs INTEGER, points INTEGER, versions INTEGER)`);
    this.#insert = this.#db.prepare("INSERT INTO ranges VALUES (NULL, ?, ?, ?, ?, ?)");
  }

  add({ variableId, fromMs, toMs, points, versions }: RemovalRange): void {
    this.#insert.run(variableId, fromMs, toMs, points, versions);
  }

  /** In the order in which they were added, read in pages. */
  *all(): Generator<RemovalRange> {
    const some = this.#db.prepare("SELECT * FROM ranges WHERE id > ? ORDER BY id LIMIT ?");
    for (let after = 0; ; ) {
      const ranges = some.all(after, READ_AT_ONCE) as unknown as readonly (RemovalRange & { id: number })[];
      for (const { variableId, fromMs, toMs, points, versions } of ranges)
        yield { variableId, fromMs, toMs, points, versions };
      const last = ranges.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
    rmSync(this.#path, { force: true });
  }
}
