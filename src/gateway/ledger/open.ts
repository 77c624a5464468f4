/** Opens the ledger that the configuration names. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Clock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { isProcessLocked } from "#core/sql/process-lock.ts";
import type { Fleet } from "./fleet.ts";
import type { Ledger } from "./ledger.ts";
import type { LedgerOptions } from "./options.ts";
import type { LedgerMeans } from "./records/observers.ts";
import { backupSqliteLedger, type LedgerCopy, type Restored, restoreSqliteLedger } from "./sqlite/backup.ts";
import { aloneBeside, openSqliteLedger, ownerLockOf } from "./sqlite/open.ts";

type Sqlite = Extract<LedgerOptions, { kind: "sqlite" }>;
type Postgres = Extract<LedgerOptions, { kind: "postgres" }>;
/** The options that identify the ledger. */
export type LedgerPlace = Pick<Sqlite, "kind" | "path"> | Postgres;

/** `ConfigError` when it is in use, missing (read-only), of a newer version, or not a ledger. */
export async function openLedger(options: LedgerPlace, means: LedgerMeans): Promise<Ledger> {
  if (options.kind === "sqlite") return await openSqliteLedger({ path: options.path, ...means });
  // A gateway with a file of its own takes no memory for the client of a server.
  const { openPostgresLedger } = await import("./postgres/open.ts");
  return await openPostgresLedger(options, means);
}

/** Whether the ledger is missing, as far as that can be known without opening it: that of a server cannot. */
export function isLedgerMissing(options: LedgerPlace): boolean {
  return options.kind === "sqlite" && !existsSync(options.path);
}

/** Whether a process owns the ledger now; several share that of a server, which none owns. */
export function isLedgerOwned(options: LedgerPlace): boolean {
  return options.kind === "sqlite" && isProcessLocked(ownerLockOf(resolve(options.path)));
}

/** `Fleet.alone` of a ledger that is not open; where there is none yet, no other process can use it. */
export function aloneAtLedger(options: LedgerPlace, clock: Clock): Fleet["alone"] {
  return async (key, work, signal) => {
    if (isLedgerMissing(options)) return work(signal);
    if (options.kind === "sqlite") return aloneBeside(resolve(options.path), clock)(key, work, signal);
    const ledger = await openLedger(options, { clock, readOnly: true });
    try {
      return await ledger.fleet.alone(key, work, signal);
    } finally {
      await ledger.close();
    }
  };
}

/** Location of the ledger as text, without secrets. */
export function ledgerWords(options: LedgerPlace): string {
  if (options.kind === "sqlite") return options.path;
  const { host, pathname } = new URL(options.url);
  return `postgres://${host}${pathname} (schema ${options.schema})`;
}

/**
 * Makes a consistent copy, also while a gateway writes the ledger. `ConfigError` when the database has its
 * own tools for that.
 */
export async function backupLedger(options: LedgerPlace, to: string): Promise<LedgerCopy> {
  if (options.kind === "sqlite") return backupSqliteLedger(options.path, to);
  throw serverCopies("back up", options, dumpCommand(options, to));
}

/**
 * Replaces the ledger by a copy; the former ledger is kept beside it. `ConfigError` while a gateway owns the
 * ledger.
 */
export async function restoreLedger(options: LedgerPlace, from: string, clock: Clock): Promise<Restored> {
  if (options.kind === "sqlite") return restoreSqliteLedger(options.path, from, clock);
  const words =
    `stop all nodes, then: ${databaseCommand("psql", options)} ` +
    `-c 'ALTER SCHEMA ${options.schema} RENAME TO ${options.schema}_replaced' && ` +
    `${databaseCommand("pg_restore", options)} --exit-on-error --single-transaction ${quoted(from)}`;
  throw serverCopies("restore", options, words);
}

function dumpCommand(options: Postgres, to: string): string {
  return `${databaseCommand("pg_dump", options)} --schema=${options.schema} --format=custom --file=${quoted(to)}`;
}

/**
 * The password is left to `PGPASSWORD` or `~/.pgpass`, since other users can read the arguments of a process.
 */
function databaseCommand(tool: string, { url }: Postgres): string {
  const { hostname, port, pathname, username } = new URL(url);
  const user = username === "" ? "" : ` --username=${quoted(decodeURIComponent(username))}`;
  const server = `--host=${hostname}${port === "" ? "" : ` --port=${port}`}${user}`;
  return `${tool} ${server} --dbname=${quoted(decodeURIComponent(pathname.slice(1)))}`;
}

function quoted(word: string): string {
  return /^[\w./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function serverCopies(operation: string, options: Postgres, command: string): ConfigError {
  return new ConfigError("HG-LEDG-009", {
    operation: `${operation} ledger`,
    subject: ledgerWords(options),
    message: `a ledger in PostgreSQL is copied by PostgreSQL's own tools: ${command}`,
  });
}
