/** Whether an entity belongs to an account. */
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
