/** Claims: facts about people in an account, for applications. The functions are for use inside a write. */
import { change, type Row, row, rows, type Steps, type StoreDialect } from "../database.ts";

export interface ClaimRecord {
  readonly userId: number;
  readonly type: string;
  readonly value: string;
}

/** Of these users in the account, by user and type. */
export function* claimsOf(
  { among }: Pick<StoreDialect, "among">,
  accountId: number,
  userIds: readonly number[],
): Steps<readonly ClaimRecord[]> {
  const sql = `SELECT * FROM user_claim WHERE account_id = ? AND ${among("user_id")} ORDER BY user_id, claim_type`;
  return (yield* rows(sql, accountId, userIds)).map(claimOf);
}

/** The user must have a membership there. */
export function* putClaim(accountId: number, { userId, type, value }: ClaimRecord): Steps<void> {
  yield* change(
    `INSERT INTO user_claim (user_id, account_id, claim_type, claim_value) VALUES (?, ?, ?, ?)
      ON CONFLICT (user_id, account_id, claim_type) DO UPDATE SET claim_value = excluded.claim_value`,
    ...[userId, accountId, type, value],
  );
}

export function* countClaims(accountId: number, userId: number): Steps<number> {
  const sql = "SELECT count(*) AS held FROM user_claim WHERE user_id = ? AND account_id = ?";
  return Number((yield* row(sql, userId, accountId))?.["held"]);
}

/** False when there was none. */
export function* removeClaim(accountId: number, userId: number, type: string): Steps<boolean> {
  const sql = "DELETE FROM user_claim WHERE user_id = ? AND account_id = ? AND claim_type = ?";
  return (yield* change(sql, userId, accountId, type)) > 0;
}

function claimOf(one: Row): ClaimRecord {
  return { userId: Number(one["user_id"]), type: String(one["claim_type"]), value: String(one["claim_value"]) };
}
