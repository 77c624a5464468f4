/** Faults of either database that pass. */
import { isPostgresTrouble } from "./postgres/faults.ts";
import { isSqliteTrouble, sqliteCode } from "./sqlite/faults.ts";

/** True when the database, not the data, is at fault: a repetition may succeed. */
export function isDatabaseTrouble(thrown: unknown): boolean {
  return sqliteCode(thrown) === undefined ? isPostgresTrouble(thrown) : isSqliteTrouble(thrown);
}
