/**
 * The readings that the service should hold after a migration: the accepted ones, later readings replacing earlier
 * ones, on disk.
 */
import { rmSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { bodiesOf, parseBody, targetOf } from "#mapping/segment/payloads.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Batch, PushTarget, Run } from "../../model.ts";
import type { Spool } from "../../spool/spool.ts";

/** Sums of one target and one month (or day) in UTC. */
export interface PeriodSum {
  /** Milliseconds since 1970 in UTC of its first instant. */
  readonly fromMs: number;
  readonly count: number;
  readonly sum: number;
  /** Sum of the magnitudes, which bounds the error of the sum. */
  readonly size: number;
}

export interface HeldReading {
  /** Milliseconds since 1970 in UTC. */
  readonly at: number;
  readonly value: number;
  /** Number of the run that delivered it last. */
  readonly run: number;
}

export type Period = "month" | "day";

const STARTS: Readonly<Record<Period, string>> = {
  month: "strftime('%s', at / 1000, 'unixepoch', 'start of month') * 1000",
  day: "at / 86400000 * 86400000",
};

export class Expectation {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #insert: StatementSync;
  readonly #some: StatementSync;
  readonly #targets = new Map<string, number>();
  #added = 0;
  #runs = 0;

  /** `path` must not be used by another component. */
  constructor(path: string) {
    this.#path = path;
    rmSync(path, { force: true });
    this.#db = new DatabaseSync(path);
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000;
      CREATE TABLE readings (
        target INTEGER, at INTEGER, value REAL, run INTEGER, PRIMARY KEY (target, at)) WITHOUT ROWID`);
    this.#insert = this.#db.prepare("INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?)");
    this.#some = this.#db.prepare(
      "SELECT at, value, run FROM readings WHERE target = ? AND at >= ? AND at < ? ORDER BY at LIMIT ?",
    );
  }

  /**
   * Collects the runs in the order of delivery. `counts` selects the batches. Returns the runs whose payload is no
   * longer in the spool; `onRun` is called for each run with its number.
   */
  async collect(
    runs: AsyncIterable<Run> | Iterable<Run>,
    parts: { readonly ledger: Pick<Ledger, "batches">; readonly spool: Pick<Spool, "openSegment"> },
    counts: (batch: Batch) => boolean = isAccepted,
    onRun?: (run: Run, nth: number) => void,
  ): Promise<readonly Run[]> {
    const gone: Run[] = [];
    for await (const run of runs) {
      this.#runs += 1;
      const nth = this.#runs;
      onRun?.(run, nth);
      const meant = (await parts.ledger.batches(run.id)).filter(counts);
      if (meant.length === 0) continue;
      const segment = await parts.spool.openSegment(run.id);
      let read = 0;
      if (segment !== null)
        for await (const { body } of bodiesOf(segment, meant)) {
          this.#add(body, nth);
          read += 1;
        }
      if (read < meant.length) gone.push(run);
    }
    return gone;
  }

  #add(body: Buffer, run: number): void {
    this.#db.exec("BEGIN");
    for (const element of parseBody(body)) {
      const target = this.#idOf(targetOf(element));
      for (const { date, value } of element.data) this.#insert.run(target, Date.parse(date), value, run);
      this.#added += element.data.length;
    }
    this.#db.exec("COMMIT");
  }

  #idOf(target: string): number {
    const known = this.#targets.get(target);
    if (known !== undefined) return known;
    const id = this.#targets.size + 1;
    this.#targets.set(target, id);
    return id;
  }

  /** Dates with a reading, and readings that a later one replaced. */
  totals(): { readonly points: number; readonly superseded: number } {
    const { n } = this.#db.prepare("SELECT count(*) AS n FROM readings").get() as { n: number };
    return { points: n, superseded: this.#added - n };
  }

  /** Joins targets that name the same variable. */
  merge(target: number, into: number): void {
    this.#db
      .prepare(
        `INSERT INTO readings SELECT ?, at, value, run FROM readings WHERE target = ?
          ON CONFLICT DO UPDATE SET value = excluded.value, run = excluded.run WHERE excluded.run >= readings.run`,
      )
      .run(into, target);
    this.#db.prepare("DELETE FROM readings WHERE target = ?").run(target);
  }

  targets(): readonly { readonly id: number; readonly target: PushTarget }[] {
    return [...this.#targets].map(([json, id]) => ({ id, target: JSON.parse(json) as PushTarget }));
  }

  /** In the order of time. */
  sums(target: number, period: Period, fromMs = 0, toMs = Number.MAX_SAFE_INTEGER): readonly PeriodSum[] {
    return this.#db
      .prepare(
        `SELECT ${STARTS[period]} AS "fromMs", count(*) AS count, sum(value) AS sum, sum(abs(value)) AS size
          FROM readings WHERE target = ? AND at >= ? AND at < ? GROUP BY 1 ORDER BY 1`,
      )
      .all(target, fromMs, toMs) as unknown as readonly PeriodSum[];
  }

  /** The earliest readings of a target within a period. */
  some(target: number, fromMs: number, toMs: number, limit: number): readonly HeldReading[] {
    return this.#some.all(target, fromMs, toMs, limit) as unknown as readonly HeldReading[];
  }

  /** Earliest and latest date of a target; the second is less than the first when there is none. */
  edges(target: number): readonly [number, number] {
    const found = this.#db
      .prepare('SELECT min(at) AS "from", max(at) AS "to" FROM readings WHERE target = ?')
      .get(target) as { from: number | null; to: number | null };
    return [found.from ?? 0, found.to ?? -1];
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
    rmSync(this.#path, { force: true });
  }
}

function isAccepted({ state }: Batch): boolean {
  return state === "accepted";
}
