/**
 * One connection with its statements, and group commit: writes that are requested in the same turn of the
 * event loop, or while the previous group is being synced, share one transaction and one fsync. A write that
 * fails does not affect the others: the group is then repeated with a savepoint for each. A promise resolves
 * when its commit is on the disk, never before. Reads see a commit a little earlier; a step that depends on a
 * read begins with a write of its own, which reaches the disk after it.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Clock, isoInstant } from "#core/clock.ts";
import { Collector } from "#core/collector.ts";
import { type ConfigError, TransientError, wordsOf } from "#core/errors.ts";
import type { Settled } from "#core/promises.ts";
import { createRunIds } from "#core/run-id.ts";
import { isSqliteTrouble } from "#core/sql/sqlite/faults.ts";
import { LogSync } from "#core/sql/sqlite/log-sync.ts";
import { rows, type Statement, type Steps, type Value } from "#core/sql/statements.ts";
import { startFault } from "#core/start-fault.ts";
import type { IsoInstant, LedgerEvent } from "../../model.ts";
import type { LedgerFault } from "../ledger.ts";
import type { OnEvent } from "../records/observers.ts";
import { lastRunId } from "../records/runs.ts";
import type { Announced, Dialect, EventFile, Store } from "../records/store.ts";
import { brokenInvariant, reach } from "../transitions.ts";

const sqliteDialect: Dialect = {
  among: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  indexedBy: (index) => `INDEXED BY ${index}`,
  jsonField: (column, field) => `(${column} ->> '$.${field}')`,
  jsonArray: (column) => `json_group_array(${column})`,
  msBetween: (from, to) => `(unixepoch(${to}, 'subsec') - unixepoch(${from}, 'subsec')) * 1000`,
  contains: (column) => `instr(${column}, ?) > 0`,
  startsWith: (expression) => `substr(${expression}, 1, length(?)) = ?`,
  isLike: (expression) => `${expression} LIKE ? ESCAPE '\\'`,
  byRowId: "NOT INDEXED",
  endsWith: (expression) => `substr(${expression}, -length(?)) = ?`,
  damage,
};

/** Bounds how long one group occupies the event loop. */
const GROUP_MAX = 256;
/**
 * Each commit writes every page that it touched, so that one for many writes costs little more than one for a
 * few. With as many writers at a time, groups begin no closer to each other than this, in milliseconds; a
 * single writer does not wait.
 */
const CROWD = 8;
const CROWD_WAIT_MS = 20;

interface Write {
  readonly what: readonly string[];
  readonly work: () => Steps<unknown>;
}

export class SqliteStore implements Store {
  readonly path: string;
  readonly clock: Clock;
  readonly dialect = sqliteDialect;
  readonly #db: DatabaseSync;
  readonly #readOnly: boolean;
  readonly #statements = new Map<string, StatementSync>();
  /** Prepared statements that return rows as arrays. */
  readonly #cellStatements = new Map<string, StatementSync>();
  #runIds: ((unixMs: number) => string) | undefined;
  readonly #onEvent: OnEvent | undefined;
  readonly #log: LogSync;
  readonly #writes: Collector<Write, unknown>;
  /** Events that are not passed to the observer yet. */
  #events: Announced[] = [];
  /** Rows changed since the ledger was opened, up to the last commit. */
  #changes = 0;
  /** When many write at a time, the next group begins no earlier. */
  #crowdedUntilMs = 0;
  #closed = false;

  constructor(db: DatabaseSync, path: string, clock: Clock, readOnly: boolean, onEvent?: OnEvent) {
    this.#db = db;
    this.#onEvent = onEvent;
    this.path = path;
    this.clock = clock;
    this.#readOnly = readOnly;
    this.#log = new LogSync(db, path);
    const pauseMs = () => this.#crowdedUntilMs - performance.now();
    this.#writes = new Collector((group) => this.#commitGroup(group), GROUP_MAX, pauseMs);
  }

  now(): IsoInstant {
    return isoInstant(this.clock.now());
  }

  /** Passes an event to the observer, once the transaction is committed. */
  announce(event: LedgerEvent, file?: EventFile): void {
    if (this.#onEvent !== undefined) this.#events.push({ event, file });
  }

  *nextRunId(): Steps<string> {
    if (this.#runIds === undefined) {
      const last = yield* lastRunId();
      this.#runIds ??= createRunIds(last);
    }
    return this.#runIds(this.clock.now().epochMilliseconds);
  }

  readonly session = null;

  /** There is no other node. */
  assertRun(): Steps<void> {
    return nothing();
  }

  assertDrop(): Steps<void> {
    return nothing();
  }

  ours(): { readonly where: string; readonly values: readonly Value[] } {
    return { where: "", values: [] };
  }

  /** The prepared statement of this text; prepared once. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#db.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  async look<T>(work: () => Steps<T>): Promise<T> {
    return readable(() => this.#drive(work()));
  }

  async read<T>(work: () => Steps<T>): Promise<T> {
    // Only the owner changes the ledger, and not while this synchronous work runs.
    if (!this.#readOnly) return this.look(work);
    return readable(() => {
      this.sql("BEGIN").run();
      try {
        return this.#drive(work());
      } finally {
        this.sql("COMMIT").run();
      }
    });
  }

  write<T>(what: string | readonly string[], work: () => Steps<T>): Promise<T> {
    if (this.#readOnly || this.#closed) {
      return Promise.reject(
        brokenInvariant("write ledger", this.path, this.#readOnly ? "opened for reading only" : "closed"),
      );
    }
    return this.#writes.add({ what: typeof what === "string" ? [what] : what, work }) as Promise<T>;
  }

  /** After the writes that wait. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writes.idle();
    this.#log.close();
    if (this.#db.isOpen) this.#db.close();
  }

  async #commitGroup(group: readonly Write[]): Promise<readonly Settled<unknown>[]> {
    const nowMs = performance.now();
    if (group.length >= CROWD) this.#crowdedUntilMs = nowMs + CROWD_WAIT_MS;
    const events = this.#events.length;
    let done: readonly Settled<unknown>[];
    try {
      done = this.#performGroup(group) ?? this.#performEach(group);
      reach("before", group, done);
      this.sql("COMMIT").run();
    } catch (thrown) {
      this.#takeBack(events);
      throw isPassing(thrown) ? writeFault(this.path, thrown) : thrown;
    }
    const fault = this.#hasChanged() ? await this.#log.run() : null;
    if (fault === null) reach("after", group, done);
    this.#announceEvents();
    // It is unknown whether the commit is on the disk; the callers repeat their work, based on new reads.
    if (fault !== null) throw writeFault(this.path, fault);
    return done;
  }

  /**
   * Nearly always all writes succeed, and then need no savepoints. Null when one failed, and the transaction
   * was rolled back.
   */
  #performGroup(group: readonly Write[]): readonly Settled<unknown>[] | null {
    const events = this.#events.length;
    this.sql("BEGIN IMMEDIATE").run();
    try {
      return group.map(({ work }) => ({ status: "fulfilled", value: this.#drive(work()) }));
    } catch (thrown) {
      if (isPassing(thrown)) throw thrown;
      this.#takeBack(events);
      return null;
    }
  }

  /**
   * Performs each by itself: those that fail are reported, and the others stand. A fault of the disk is
   * thrown: it ends the whole group.
   */
  #performEach(group: readonly Write[]): readonly Settled<unknown>[] {
    this.sql("BEGIN IMMEDIATE").run();
    return group.map((write) => this.#perform(write));
  }

  #takeBack(events: number): void {
    if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
    this.#events.length = events;
  }

  /**
   * Whether rows changed since the last call. Changes that were rolled back count too, and cost at most one
   * sync.
   */
  #hasChanged(): boolean {
    const before = this.#changes;
    this.#changes = (this.#cells("SELECT total_changes()").get() as unknown as readonly [number])[0];
    return this.#changes !== before;
  }

  #announceEvents(): void {
    const events = this.#events;
    this.#events = [];
    if (this.#onEvent === undefined || events.length === 0) return;
    const statement = this.#cells("SELECT drop_name, path FROM arrivals WHERE id = ?");
    for (const { event, file } of events) {
      const [drop, path] =
        file === undefined
          ? (row<readonly [string, string]>(statement, event.arrivalId) ?? ["", ""])
          : [file.drop, file.path];
      this.#onEvent({ ...event, drop, path });
    }
  }

  #drive<T>(steps: Steps<T>): T {
    let next = steps.next();
    while (next.done !== true) next = steps.next(this.#answer(next.value));
    return next.value;
  }

  #answer(statement: Statement): unknown {
    switch (statement.want) {
      case "row":
        return this.sql(statement.sql).get(...statement.values);
      case "rows":
        return this.sql(statement.sql).all(...statement.values);
      case "cells":
        return this.#cells(statement.sql).all(...statement.values);
      case "nothing":
      case "changes":
        return Number(this.sql(statement.sql).run(...statement.values).changes);
      case "row each": {
        const prepared = this.#cells(statement.sql);
        return statement.tuples.map((values) => prepared.get(...values));
      }
      case "nothing each": {
        const prepared = this.sql(statement.sql);
        for (const values of statement.tuples) prepared.run(...values);
        return undefined;
      }
    }
  }

  #cells(text: string): StatementSync {
    let statement = this.#cellStatements.get(text);
    if (statement === undefined) {
      statement = this.#db.prepare(text);
      statement.setReturnArrays(true);
      this.#cellStatements.set(text, statement);
    }
    return statement;
  }

  #perform({ work }: Write): Settled<unknown> {
    this.sql("SAVEPOINT one").run();
    const events = this.#events.length;
    try {
      const value = this.#drive(work());
      this.sql("RELEASE one").run();
      return { status: "fulfilled", value };
    } catch (reason) {
      if (isPassing(reason) || !this.#db.isTransaction) throw reason;
      this.#db.exec("ROLLBACK TO one; RELEASE one");
      this.#events.length = events;
      return { status: "rejected", reason };
    }
  }
}

function* nothing(): Steps<void> {}

function* damage(most: number): Steps<readonly LedgerFault[]> {
  const broken = (yield* rows<{ integrity_check: string }>(`PRAGMA integrity_check(${most})`))
    .filter((found) => found.integrity_check !== "ok")
    .map((found) => found.integrity_check);
  const lost = yield* rows<{ table: string; parent: string; n: number }>(
    `SELECT "table", parent, count(*) AS n FROM pragma_foreign_key_check GROUP BY 1, 2`,
  );
  const words = lost.map(({ table, parent, n }) => `${n} rows of ${table} refer to missing rows of ${parent}`);
  return [...broken, ...words].map((one) => ({ subject: "file", words: one, repair: null }));
}

// Typed reads of prepared statements, with faults converted to those of the ledger.

/** A row in the shape of the caller's SELECT. */
export function row<Row>(statement: StatementSync, ...values: Value[]): Row | undefined {
  return readable(() => statement.get(...values) as unknown as Row | undefined);
}

function readable<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw isPassing(thrown) ? readFault(thrown) : thrown;
  }
}

// Converts SQLite's result codes to errors of the ledger.

function isPassing(thrown: unknown): boolean {
  return thrown instanceof TransientError || isSqliteTrouble(thrown);
}

function writeFault(path: string, cause: unknown): TransientError {
  return passingFault("write ledger", path, `the ledger ${path} cannot be written now`, cause);
}

function readFault(cause: unknown): TransientError {
  return passingFault("read ledger", "ledger", "the ledger cannot be read now", cause);
}

function passingFault(operation: string, subject: string, words: string, cause: unknown): TransientError {
  if (cause instanceof TransientError) return cause;
  return new TransientError("HG-LEDG-004", {
    operation,
    subject,
    message: `${words}: ${wordsOf(cause)}`,
    cause,
  });
}

/** `TransientError` when the disk is at fault, since the next attempt may succeed. */
export function openFault(path: string, cause: unknown): ConfigError | TransientError {
  return startFault("HG-LEDG-002", {
    operation: "open ledger",
    subject: path,
    message: `the ledger ${path} cannot be opened: ${wordsOf(cause)}`,
    cause,
  });
}
