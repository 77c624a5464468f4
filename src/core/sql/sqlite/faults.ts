/** Classifies errors of SQLite by their result codes. */
import { wordsOf } from "../../errors.ts";

const BUSY = 5;
const IO_ERROR = 10;

/**
 * The primary result code (`SQLITE_FULL`, `SQLITE_IOERR`, …), or undefined when the error is not one of
 * SQLite.
 */
export function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
}

/** An error like that of SQLite while another connection has the lock. */
export function busy(message: string): Error {
  return Object.assign(new Error(message), { errcode: BUSY });
}

/** The error of a failed sync of the log, as SQLite would report it: an error of its own stays as it is. */
export function syncFault(cause: unknown): unknown {
  if (isSqliteTrouble(cause)) return cause;
  const message = `the log of the database cannot be synced: ${wordsOf(cause)}`;
  return Object.assign(new Error(message, { cause }), { errcode: IO_ERROR });
}

/** Another connection has the lock. */
export function isBusy(thrown: unknown): boolean {
  return sqliteCode(thrown) === BUSY;
}

/**
 * PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL: the disk or the machine is
 * at fault, not the statement.
 */
const PASSING: ReadonlySet<number> = new Set([3, 5, 6, 7, 8, 9, 10, 13, 14, 15]);

/** The database, not the data, is at fault: a repetition may succeed. */
export function isSqliteTrouble(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code !== undefined && PASSING.has(code);
}
