/** Faults of either database that pass. */
import { isPostgresTrouble } from "./postgres/faults.ts";
import { isSqliteTrouble, sqliteCode } from "./sqlite/faults.ts";

const SQLITE_FULL = 13;
/** PostgreSQL's disk_full, and the system's own. */
const FULL_CODES: ReadonlySet<unknown> = new Set(["53100", "ENOSPC", "EDQUOT"]);

/** A disk without space, of a database or of files; also as the cause of another error. */
export function isFullDisk(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause)
    if (sqliteCode(error) === SQLITE_FULL || ("code" in error && FULL_CODES.has(error.code))) return true;
  return false;
}

/** True when the database, not the data, is at fault: a repetition may succeed. */
export function isDatabaseTrouble(thrown: unknown): boolean {
  return sqliteCode(thrown) === undefined ? isPostgresTrouble(thrown) : isSqliteTrouble(thrown);
}
