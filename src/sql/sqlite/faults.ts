/** Classifies errors of SQLite by their result codes. */

const BUSY = 5;

/**
 * The primary result code (`SQLITE_FULL`, `SQLITE_IOERR`, …), or undefined when the error is not one of
 * SQLite.
 */
export function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
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
