/**
 * Connections to the ledger's database: one that writes, which is replaced when it is lost, and a few that
 * read.
 */
import { Client, type ClientConfig, Pool, TypeOverrides } from "pg";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { commitDurably } from "#core/sql/postgres/durability.ts";

export interface ConnectionOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  readonly schema: string;
  /** Name of the application, so that the administrator of the server recognizes the connection. */
  readonly application: string;
  /**
   * The server ends a transaction that is idle for so long: its process sleeps, and others wait for its
   * locks.
   */
  readonly idleTransactionMs: number;
  readonly log: Logger | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** A statement that takes longer is stuck; the slowest is the check of a whole ledger. */
const STATEMENT_TIMEOUT_MS = 600_000;
export const READERS_MAX = 4;
/** Bodies that are written or read at once. */
const CARRIERS_MAX = 4;

const INT8 = 20;
const NUMERIC = 1700;

export class Connections {
  /** Host, port, database and schema, without user and password. */
  readonly place: string;
  readonly readers: Pool;
  /** Pool for bytes, which occupy a connection for long. */
  readonly carriers: Pool;
  readonly #config: ClientConfig;
  readonly #log: Logger | undefined;
  #writer: Promise<Client> | undefined;

  constructor(options: ConnectionOptions) {
    this.#config = clientConfig(options);
    this.#log = options.log;
    this.place = placeOf(options);
    this.readers = this.#pool(READERS_MAX);
    this.carriers = this.#pool(CARRIERS_MAX);
  }

  /** The connection that writes. */
  writer(): Promise<Client> {
    this.#writer ??= this.#connect().catch((thrown) => {
      this.#writer = undefined;
      throw thrown;
    });
    return this.#writer;
  }

  /** A connection for a single purpose; the caller must end it. */
  async own(): Promise<Client> {
    const client = new Client(this.#config);
    client.on("error", (thrown) => this.#logLost(thrown));
    await client.connect();
    try {
      await commitDurably(client);
    } catch (thrown) {
      await client.end().catch(() => undefined); // The connection has failed already.
      throw thrown;
    }
    return client;
  }

  /** Drops the connection; the next call of `writer` opens a new one. */
  async dropWriter(): Promise<void> {
    const writer = await this.#writer?.catch(() => undefined);
    this.#writer = undefined;
    // The connection is unusable, so an error while it ends does not matter.
    await writer?.end().catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.dropWriter();
    await this.readers.end();
    await this.carriers.end();
  }

  #pool(max: number): Pool {
    const pool = new Pool({ ...this.#config, max, onConnect: commitDurably });
    // Each client needs a handler of its own, also while it is in use: the error is reported to the user of
    // the client as well.
    pool.on("connect", (client) => client.on("error", (thrown) => this.#logLost(thrown)));
    pool.on("error", () => undefined);
    return pool;
  }

  async #connect(): Promise<Client> {
    const client = await this.own();
    client.on("error", () => {
      this.#writer = undefined;
    });
    return client;
  }

  #logLost(thrown: unknown): void {
    this.#log?.warn({ reason: wordsOf(thrown) }, `a connection to the ledger ${this.place} was lost`);
  }
}

function clientConfig({ url, schema, application, idleTransactionMs }: ConnectionOptions): ClientConfig {
  const types = new TypeOverrides();
  // Counts, sizes and ids stay far below 2^53.
  types.setTypeParser(INT8, Number);
  types.setTypeParser(NUMERIC, Number);
  return {
    connectionString: url,
    application_name: application,
    options: `-c search_path=${schema}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + CONNECT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: idleTransactionMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: CONNECT_TIMEOUT_MS,
    pipeline: true,
    types,
  };
}

function placeOf({ url, schema }: ConnectionOptions): string {
  const { host, pathname } = new URL(url);
  return `postgres://${host}${pathname} (schema ${schema})`;
}
