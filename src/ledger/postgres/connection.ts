/** Connections to the ledger's database: one that writes, made again when it was lost, and a few that read. */
import { Client, type ClientConfig, Pool, TypeOverrides } from "pg";
import { commitDurably } from "../../sql/postgres/durability.ts";
import { wordsOf } from "../../support/errors.ts";
import type { Logger } from "../../support/log.ts";

export interface ConnectionOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  readonly schema: string;
  /** Told to the server, so that its administrator sees whose connection it is. */
  readonly application: string;
  /** Ends a transaction that does nothing for so long: its process sleeps, and others wait for its locks. */
  readonly idleTransactionMs: number;
  readonly log: Logger | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** A statement that takes longer hangs; the slowest is the check of a whole ledger. */
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
  /** For bytes, which keep a connection for long. */
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

  /** The one that writes. */
  writer(): Promise<Client> {
    this.#writer ??= this.#connect().catch((thrown) => {
      this.#writer = undefined;
      throw thrown;
    });
    return this.#writer;
  }

  /** One for a single purpose, which whoever asked for it ends. */
  async own(): Promise<Client> {
    const client = new Client(this.#config);
    client.on("error", (thrown) => this.#tellLost(thrown));
    await client.connect();
    try {
      await commitDurably(client);
    } catch (thrown) {
      await client.end().catch(() => undefined); // It has failed already, and is of no use.
      throw thrown;
    }
    return client;
  }

  /** The next call of `writer` makes a new one. */
  async dropWriter(): Promise<void> {
    const writer = await this.#writer?.catch(() => undefined);
    this.#writer = undefined;
    // It is being dropped because it is of no use any more; how it ends does not matter.
    await writer?.end().catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.dropWriter();
    await this.readers.end();
    await this.carriers.end();
  }

  #pool(max: number): Pool {
    const pool = new Pool({ ...this.#config, max, onConnect: commitDurably });
    // Each of them, also while somebody asks it: who asked is told as well.
    pool.on("connect", (client) => client.on("error", (thrown) => this.#tellLost(thrown)));
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

  #tellLost(thrown: unknown): void {
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
