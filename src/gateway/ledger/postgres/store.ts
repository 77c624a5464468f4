/**
 * Group commit over a network: writes that are requested while another group is being committed share the
 * next transaction, and so one wait for the server's disk. Each has a savepoint of its own: a write that
 * fails does not affect the others. A promise resolves after the commit, never before. The server reports
 * conflicts between nodes (repeatable read); the group is repeated then.
 */
import type { Client, QueryResult } from "pg";
import { type Clock, isoInstant } from "#core/clock.ts";
import { Collector } from "#core/collector.ts";
import { isLeaseLost, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Settled } from "#core/promises.ts";
import { createRunIds } from "#core/run-id.ts";
import { isConflict, isLost } from "#core/sql/postgres/faults.ts";
import { columnsOf, insertEach, numbered, selectEach, storable } from "#core/sql/postgres/translate.ts";
import { type EachStatement, execute, rowEach, type Statement, type Steps, type Value } from "#core/sql/statements.ts";
import type { IsoInstant, LedgerEvent } from "../../model.ts";
import type { LedgerFault } from "../ledger.ts";
import type { OnEvent } from "../records/observers.ts";
import { lastRunId } from "../records/runs.ts";
import type { Announced, Dialect, EventFile, Store } from "../records/store.ts";
import { brokenInvariant, reach } from "../transitions.ts";
import { type Connections, READERS_MAX } from "./connection.ts";
import { faultOf, isSessionEnded } from "./faults.ts";
import type { NodeSession } from "./sessions.ts";
import { wasCommitted } from "./transaction.ts";

/** Prepared statements by their text, which may be used for one tuple of values and for many at once. */
const PREPARED: Readonly<Record<"one" | "each", Prepared>> = { one: new Map(), each: new Map() };

const postgresDialect: Dialect = {
  among: (column) => `${column} IN (SELECT json_array_elements_text(?::json))`,
  // The planner of PostgreSQL has statistics, and accepts no hint.
  indexedBy: () => "",
  jsonField: (column, field) => `(${column}::json ->> '${field}')`,
  jsonArray: (column) => `coalesce(json_agg(${column}), '[]')::text`,
  msBetween: (from, to) => `(extract(epoch FROM ${to}::timestamptz - ${from}::timestamptz) * 1000)::float8`,
  contains: (column) => `strpos(${column}, ?) > 0`,
  startsWith: (expression) => `left(${expression}, length(?::text)) = ?`,
  isLike: (expression) => `${expression} ILIKE ? ESCAPE '\\'`,
  byRowId: "",
  endsWith: (expression) => `right(${expression}, length(?::text)) = ?`,
  // The server guards its files itself, and foreign keys refuse dangling rows.
  damage: nothingBroken,
};

/** Bounds the work that is repeated when one write conflicts with another node. */
const GROUP_MAX = 256;
const ATTEMPTS_MAX = 10;

/** The runs of this node, and those of no living node. */
const OURS =
  "(runs.owner IS NULL OR runs.owner NOT IN " +
  "(SELECT id FROM sessions WHERE ended_at IS NULL AND id IS DISTINCT FROM ?))";

interface Write {
  readonly what: readonly string[];
  readonly work: () => Steps<unknown>;
}

export interface StoreMeans {
  readonly clock: Clock;
  readonly readOnly: boolean;
  readonly onEvent: OnEvent | undefined;
  readonly log: Logger | undefined;
  /** The session of this process in the fleet; null for commands, which hold nothing. */
  readonly session: () => Pick<NodeSession, "id" | "node" | "lost"> | null;
}

export class PostgresStore implements Store {
  readonly clock: Clock;
  readonly dialect = postgresDialect;
  readonly #connections: Connections;
  readonly #means: StoreMeans;
  readonly #writes = new Collector((group: readonly Write[]) => this.#commitGroup(group), GROUP_MAX);
  /** Events of the open transaction, for the observer. */
  #events: Announced[] = [];
  /** The events of earlier groups are passed to the observer. */
  #announced = Promise.resolve();
  #closed = false;

  constructor(connections: Connections, means: StoreMeans) {
    this.#connections = connections;
    this.#means = means;
    this.clock = means.clock;
  }

  now(): IsoInstant {
    return isoInstant(this.clock.now());
  }

  /** Also greater than those that other nodes issued, whatever their clocks say. */
  *nextRunId(): Steps<string> {
    const last = yield* lastRunId();
    return createRunIds(last)(this.clock.now().epochMilliseconds);
  }

  /** The fence of this node; null for a process that is not a node. */
  get session(): number | null {
    return this.#means.session()?.id ?? null;
  }

  get node(): string | null {
    return this.#means.session()?.node ?? null;
  }

  assertRun(id: string): Steps<void> {
    return execute("SELECT assert_run(?, ?)", id, this.session);
  }

  assertDrop(drop: string, fence: number | null): Steps<void> {
    return execute("SELECT assert_drop(?, ?)", drop, fence);
  }

  ours(): { readonly where: string; readonly values: readonly Value[] } {
    return { where: ` AND ${OURS}`, values: [this.session] };
  }

  announce(event: LedgerEvent, file?: EventFile): void {
    if (this.#means.onEvent !== undefined) this.#events.push({ event, file });
  }

  look<T>(work: () => Steps<T>): Promise<T> {
    return this.#ask(() => drive(this.#connections.readers, work()));
  }

  read<T>(work: () => Steps<T>): Promise<T> {
    return this.#ask(async () => {
      const client = await this.#connections.readers.connect();
      let broken: unknown;
      try {
        const [, value] = await Promise.all([
          client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
          drive(client, work()),
        ]);
        return value;
      } catch (thrown) {
        broken = thrown;
        throw thrown;
      } finally {
        const ended = await client.query("ROLLBACK").catch(() => undefined);
        client.release(ended === undefined || isLost(broken));
      }
    });
  }

  /**
   * Repeats a read whose connection was lost, such as that of a process that slept: a read changes nothing.
   * All waiting connections may be lost.
   */
  async #ask<T>(ask: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await ask();
      } catch (thrown) {
        if (!isLost(thrown) || attempt >= READERS_MAX) throw this.#fault("read ledger", thrown);
      }
    }
  }

  write<T>(what: string | readonly string[], work: () => Steps<T>): Promise<T> {
    if (this.#means.readOnly || this.#closed) {
      const words = this.#means.readOnly ? "opened for reading only" : "closed";
      return Promise.reject(brokenInvariant("write ledger", this.#connections.place, words));
    }
    return this.#writes.add({ what: typeof what === "string" ? [what] : what, work }) as Promise<T>;
  }

  /** Commits the waiting writes, and accepts no more. */
  async flush(): Promise<void> {
    this.#closed = true;
    await this.#writes.idle();
    await this.#announced;
  }

  async #commitGroup(group: readonly Write[]): Promise<readonly Settled<unknown>[]> {
    for (let attempt = 1; ; attempt += 1) {
      const fence = this.session;
      try {
        const done = await this.#tryGroup(group, fence);
        reach("after", group, done);
        const events = this.#events;
        this.#announced = this.#announced.then(() => this.#announce(events));
        return done;
      } catch (thrown) {
        await this.#abandon(thrown);
        if (isSessionEnded(thrown) && fence !== null) await this.#means.session()?.lost(fence);
        if (!isConflict(thrown) || attempt === ATTEMPTS_MAX) throw this.#fault("write ledger", thrown);
      }
    }
  }

  async #abandon(thrown: unknown): Promise<void> {
    if (isLost(thrown)) return this.#connections.dropWriter();
    try {
      await (await this.#connections.writer()).query("ROLLBACK");
    } catch {
      await this.#connections.dropWriter();
    }
  }

  async #tryGroup(group: readonly Write[], fence: number | null): Promise<readonly Settled<unknown>[]> {
    const client = await this.#connections.writer();
    this.#events = [];
    const [, done] = await Promise.all([
      client.query("BEGIN ISOLATION LEVEL REPEATABLE READ"),
      this.#performAll(client, group),
    ]);
    reach("before", group, done);
    await this.#commit(client, fence);
    return done;
  }

  async #performAll(client: Client, group: readonly Write[]): Promise<readonly Settled<unknown>[]> {
    const done: Settled<unknown>[] = [];
    for (const write of group) done.push(await this.#perform(client, write));
    return done;
  }

  /**
   * A fault of one write is reported to its caller; a fault of the server or a conflict with other nodes ends
   * the whole group.
   */
  async #perform(client: Client, { work }: Write): Promise<Settled<unknown>> {
    const events = this.#events.length;
    try {
      const [, value] = await Promise.all([client.query("SAVEPOINT one"), drive(client, work())]);
      await client.query("RELEASE SAVEPOINT one");
      return { status: "fulfilled", value };
    } catch (thrown) {
      const fault = this.#fault("write ledger", thrown);
      if (isConflict(thrown) || (fault !== thrown && !isLeaseLost(fault))) throw thrown;
      await client.query("ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one");
      this.#events.length = events;
      return { status: "rejected", reason: fault };
    }
  }

  /**
   * When the connection is lost before the response, another connection queries whether the transaction was
   * committed.
   */
  async #commit(client: Client, fence: number | null): Promise<void> {
    const { rows } = await client.query<{ id: string | null }>(
      "SELECT pg_current_xact_id_if_assigned()::text AS id, assert_session($1)",
      [fence],
    );
    try {
      await client.query("COMMIT");
    } catch (thrown) {
      const id = rows[0]?.id ?? null;
      if (!isLost(thrown) || id === null || !(await wasCommitted(this.#connections.readers, id, this.clock)))
        throw thrown;
      await this.#connections.dropWriter();
    }
  }

  async #announce(events: readonly Announced[]): Promise<void> {
    const { onEvent } = this.#means;
    if (onEvent === undefined || events.length === 0) return;
    const sql = "SELECT drop_name, path FROM arrivals WHERE id = ?";
    try {
      const ids = events.flatMap(({ event, file }) => (file === undefined ? [[event.arrivalId]] : []));
      const found = [...(await this.look(() => rowEach<readonly [string, string]>(sql, ["bigint"], ids)))];
      for (const { event, file } of events) {
        const [drop, path] = file === undefined ? (found.shift() ?? ["", ""]) : [file.drop, file.path];
        onEvent({ ...event, drop, path });
      }
    } catch (thrown) {
      // A failing observer must not undo the commit; the events are in the ledger.
      this.#means.log?.warn({ reason: wordsOf(thrown) }, "events of the ledger could not be passed to the observer");
    }
  }

  #fault(operation: string, thrown: unknown): unknown {
    return faultOf(operation, this.#connections.place, thrown);
  }
}

// biome-ignore lint/correctness/useYield: there is nothing to ask.
function* nothingBroken(): Steps<readonly LedgerFault[]> {
  return [];
}

// Drives a unit of work on the ledger over one connection.

/** The part of `pg`'s clients that the driver uses. */
interface Asked {
  query(question: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
    readonly rowMode?: "array";
  }): Promise<QueryResult>;
}

/**
 * Statements whose result the work does not need are sent behind one another without a wait; the first
 * failure is thrown, after all responses have arrived.
 */
async function drive<T>(client: Asked, steps: Steps<T>): Promise<T> {
  const sent: Promise<void>[] = [];
  let first: { readonly thrown: unknown } | undefined;
  const noteFault = (thrown: unknown) => {
    first ??= { thrown };
  };
  try {
    let next = steps.next();
    while (next.done !== true) {
      const { want } = next.value;
      const answer = ask(client, next.value);
      if (want === "nothing" || want === "nothing each") {
        sent.push(answer.then(() => undefined, noteFault));
        next = steps.next(undefined);
      } else {
        next = steps.next(await answer);
      }
    }
    await Promise.all(sent);
    if (first !== undefined) throw first.thrown;
    return next.value;
  } catch (thrown) {
    await Promise.all(sent);
    throw first === undefined ? thrown : first.thrown;
  }
}

async function ask(client: Asked, statement: Statement): Promise<unknown> {
  if ("tuples" in statement) return askEach(client, statement);
  const { want, sql, values } = statement;
  const result = await client.query({
    ...prepared(sql, numbered),
    values: values.map(storable),
    ...(want === "cells" ? { rowMode: "array" as const } : {}),
  });
  if (want === "row") return result.rows[0];
  return want === "rows" || want === "cells" ? result.rows : (result.rowCount ?? 0);
}

async function askEach(client: Asked, { want, sql, types, tuples }: EachStatement): Promise<unknown> {
  const values = [...columnsOf(tuples, types.length)];
  if (want === "nothing each") {
    await client.query({ ...prepared(sql, (text) => insertEach(text, types), "each"), values });
    return undefined;
  }
  const question = prepared(sql, (text) => selectEach(text, types), "each");
  const { rows } = await client.query({ ...question, values, rowMode: "array" });
  return (rows as readonly (readonly unknown[])[]).map(([_place, ...found]) =>
    found.every((cell) => cell === null) ? undefined : found,
  );
}

type Prepared = Map<string, { readonly name: string; readonly text: string }>;

/**
 * Each connection parses the text once, under this name. The texts are those of the ledger's code, so they
 * are few.
 */
function prepared(sql: string, translate: (sql: string) => string, kind: keyof typeof PREPARED = "one") {
  const those = PREPARED[kind];
  let known = those.get(sql);
  if (known === undefined) {
    known = { name: `ledger-${kind}-${those.size + 1}`, text: translate(sql) };
    those.set(sql, known);
  }
  return known;
}
