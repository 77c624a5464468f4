/** Rows that belong to an account, and how many it may have. */
import { AccountFull, type Limited } from "../account-limits.ts";
import { row, type Steps, type StoreDialect } from "./database.ts";

/** Whether the parent belongs to the account; it is not removed until the transaction ends. */
export function* isOwned(
  { forKeyShare }: StoreDialect,
  table: "site" | "source",
  id: number,
  accountId: number,
): Steps<boolean> {
  const sql = `SELECT 1 FROM ${table} WHERE id = ? AND account_id = ?${forKeyShare}`;
  return (yield* row(sql, id, accountId)) !== undefined;
}

/** For use inside a write, before the rows are added. Throws `AccountFull`; undefined: no limit. */
export function* requireRoom(
  dialect: StoreDialect,
  accountId: number,
  table: Limited,
  most: number | undefined,
): Steps<void> {
  if (most === undefined) return;
  // Others that add to the account wait, and count what is added here.
  yield* row(`SELECT 1 FROM structure_change WHERE account_id = ?${dialect.forUpdate("structure_change")}`, accountId);
  yield* requireFew(accountId, table, most);
}

/** As above, where a few beyond the limit do no harm: what others add at the same moment is not counted. */
export function* requireFew(accountId: number, table: Limited, most: number): Steps<void> {
  if ((yield* countOf(accountId, table)) >= most) throw new AccountFull(table, most);
}

export function* countOf(accountId: number, table: Limited): Steps<number> {
  // Deleted triggers stay for their history.
  const counted = table === "file_trigger" ? " AND state <> 'Deleted'" : "";
  const sql = `SELECT count(*) AS held FROM ${table} WHERE account_id = ?${counted}`;
  return Number((yield* row(sql, accountId))?.["held"]);
}
