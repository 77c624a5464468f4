/**
 * Connections to PostgreSQL: a pool, statements with `?` for parameters, transactions, and the errors that
 * may pass by themselves.
 */

import { join } from "node:path";
import pg from "pg";
import { ConfigError, type HeadgateError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { commitDurably, durabilityRisks } from "#core/sql/postgres/durability.ts";
import { isCancelled, isDeadlock, isPostgresTrouble } from "#core/sql/postgres/faults.ts";
import { migrate, type PostgresSchema, stateOf } from "#core/sql/postgres/migrate.ts";
import { numbered } from "#core/sql/postgres/translate.ts";
import { startFault } from "#core/start-fault.ts";
import type { HubOptions } from "../../options.ts";
import { otherStore } from "../database.ts";
import type { SqlValue } from "../filter-sql.ts";

export type PostgresOptions = Extract<HubOptions["store"], { readonly kind: "postgres" }>;
export type Row = Readonly<Record<string, unknown>>;
export type Value = SqlValue | Uint8Array | readonly (string | null)[] | readonly (number | null)[];

/** Key of the advisory lock under which one node at a time migrates. */
const LOCK = 4_713_001;

const STORE_SCHEMA: PostgresSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "migration",
  lock: (client) => client.query("SELECT pg_advisory_xact_lock($1)", [LOCK]),
  foreign: null,
  otherVersion: otherStore,
};

/** Whole numbers of the hub fit a number of JavaScript; JSON is parsed where it is needed. */
const INT8 = 20;
const JSON_TYPE = 114;
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") => {
    if (oid === INT8) return Number;
    if (oid === JSON_TYPE) return (value: string) => value;
    return pg.types.getTypeParser(oid, format as "text");
  },
};

export interface PoolParts {
  /** Maximum number of connections. */
  readonly max: number;
  /** Settings of each session beside the schema. */
  readonly settings?: Readonly<Record<string, string>>;
}

export function createPool(options: PostgresOptions, { max, settings = {} }: PoolParts): pg.Pool {
  const all = { search_path: options.schema, ...settings };
  const pool = new pg.Pool({
    connectionString: options.url,
    max,
    types,
    connectionTimeoutMillis: options.connectTimeout,
    keepAlive: true,
    onConnect: commitDurably,
    application_name: "headgate-hub",
    options: Object.entries(all)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
  });
  // The pool replaces an idle connection that breaks. One that breaks in the middle of a transaction fails
  // its next statement; its event has no other listener then, and would end the process.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/**
 * Opens a pool and brings the schema up to date. Throws `ConfigError`, or `TransientError` while the server
 * is unavailable.
 */
export async function openPool(options: PostgresOptions, log: Logger): Promise<pg.Pool> {
  // Just-in-time compilation takes longer than any statement of the hub.
  const pool = createPool(options, { max: options.pool, settings: { jit: "off" } });
  try {
    await bringUp(pool, options.schema, serverOf(options.url));
    for (const risk of await durabilityRisks(pool)) log.warn({ store: serverOf(options.url) }, risk);
    return pool;
  } catch (thrown) {
    await pool.end();
    if (thrown instanceof ConfigError) throw thrown;
    throw cannotOpen(options, thrown);
  }
}

export function cannotOpen({ url }: PostgresOptions, cause: unknown): HeadgateError {
  return startFault("HG-HUB-001", {
    operation: "open store",
    subject: serverOf(url),
    message: `the store of the hub cannot be opened: ${wordsOf(cause)}`,
    hint: "Check host, database, user and password in `store.url`, and that the user may create the schema.",
    cause,
  });
}

/** The URL without its password. */
function serverOf(text: string): string {
  const url = URL.parse(text);
  if (url === null) return "store.url";
  return `postgres://${url.username === "" ? "" : `${url.username}@`}${url.host}${url.pathname}`;
}

/** Statements on a pool or on one connection; parameters are written `?`. */
export function sqlOn(connection: pg.Pool | pg.PoolClient) {
  const query = async (sql: string, values: readonly Value[]) => {
    const ask = (on: pg.Pool | pg.PoolClient) => on.query<Row>(numbered(sql), values as Value[]);
    // A statement that only reads may be repeated.
    if (!(connection instanceof pg.Pool) || !sql.trimStart().startsWith("SELECT")) return ask(connection);
    const { client, value } = await onLiving(connection, ask);
    client.release();
    return value;
  };
  return {
    get: async (sql: string, ...values: Value[]): Promise<Row | undefined> => (await query(sql, values)).rows[0],
    all: async (sql: string, ...values: Value[]): Promise<readonly Row[]> => (await query(sql, values)).rows,
    /** Returns the number of rows it changed. */
    run: async (sql: string, ...values: Value[]): Promise<number> => (await query(sql, values)).rowCount ?? 0,
  };
}
export type Sql = ReturnType<typeof sqlOn>;

/**
 * Runs `ask` on a working connection, and discards connections that the server has ended without the pool's
 * notice. `ask` may run several times.
 */
async function onLiving<T>(
  pool: pg.Pool,
  ask: (client: pg.PoolClient) => Promise<T>,
): Promise<{ readonly client: pg.PoolClient; readonly value: T }> {
  for (let left = pool.options.max ?? 0; ; left -= 1) {
    const client = await pool.connect();
    try {
      return { client, value: await ask(client) };
    } catch (thrown) {
      const isDead = isPostgresTrouble(thrown) && !isCancelled(thrown);
      client.release(isDead);
      if (!isDead || left <= 0) throw thrown;
    }
  }
}

const DEADLOCKS_MAX = 3;

/** One transaction. When two wait for each other, the server ends one, which is repeated. */
export async function transact<T>(pool: pg.Pool, work: (sql: Sql) => Promise<T>): Promise<T> {
  for (let deadlocks = 0; ; deadlocks += 1) {
    const { client } = await onLiving(pool, (fresh) => fresh.query("BEGIN"));
    try {
      const result = await work(sqlOn(client));
      await client.query("COMMIT");
      client.release();
      return result;
    } catch (thrown) {
      await abandon(client);
      if (!isDeadlock(thrown) || deadlocks >= DEADLOCKS_MAX) throw thrown;
    }
  }
}

/** Rolls back the transaction of a connection; a connection on which that fails is closed. */
export async function abandon(client: pg.PoolClient): Promise<void> {
  try {
    await client.query("ROLLBACK");
    client.release();
  } catch (thrown) {
    client.release(thrown instanceof Error ? thrown : true);
  }
}

// The schema of the hub's store in a PostgreSQL database, brought up to date by one node at a time.

/** Throws `ConfigError` when a newer version wrote the schema, or another state of it. */
async function bringUp(pool: pg.Pool, name: string, subject: string): Promise<void> {
  const client = await pool.connect();
  try {
    // Without the lock first, since the lock would have to wait for other nodes.
    const { due } = await stateOf(client, STORE_SCHEMA, name, subject);
    if (due.length > 0) await migrate(client, STORE_SCHEMA, name, subject);
    client.release();
  } catch (thrown) {
    client.release(true);
    throw thrown;
  }
}
