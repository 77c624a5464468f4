/** Faults of either database that pass. */
import { isOutOfSpace } from "../errors.ts";
import { isPostgresTrouble } from "./postgres/faults.ts";
import { isSqliteTrouble, sqliteCode } from "./sqlite/faults.ts";

const SQLITE_FULL = 13;
/** The code of PostgreSQL for a full disk. */
const DISK_FULL = "53100";

/** A disk without space, of a database or of files; also as the cause of another error. */
export function isFullDisk(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause)
    if (sqliteCode(error) === SQLITE_FULL || ("code" in error && error.code === DISK_FULL)) return true;
  return isOutOfSpace(thrown);
}

/** True when the database, not the data, is at fault: a repetition may succeed. */
export function isDatabaseTrouble(thrown: unknown): boolean {
  return sqliteCode(thrown) === undefined ? isPostgresTrouble(thrown) : isSqliteTrouble(thrown);
}
