/** Personal API tokens, of which only a hash is kept. The functions are for use inside a write. */
import { change, insert, type Row, row, rows, type Steps } from "../database.ts";
import { jsonOf, number } from "../structure-rows.ts";

export interface NewApiToken {
  readonly userId: number;
  readonly accountId: number;
  readonly name: string;
  /** SHA-256. */
  readonly hash: string;
  readonly scopes: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number;
}

export interface ApiTokenRecord extends Omit<NewApiToken, "hash"> {
  readonly id: number;
  readonly lastUsedMs: number | null;
}

export function addApiToken({ hash, ...token }: NewApiToken): Steps<number> {
  return insert("api_token", {
    user_id: token.userId,
    account_id: token.accountId,
    name: token.name,
    token_hash: hash,
    scopes: jsonOf(token.scopes),
    created_ms: token.createdMs,
    expires_ms: token.expiresMs,
  });
}

export function* apiTokenByHash(hash: string): Steps<ApiTokenRecord | null> {
  const found = yield* row("SELECT * FROM api_token WHERE token_hash = ?", hash);
  return found === undefined ? null : apiTokenOf(found);
}

/** Of a user in an account, the newest first. */
export function* apiTokensOf(userId: number, accountId: number): Steps<readonly ApiTokenRecord[]> {
  const sql = "SELECT * FROM api_token WHERE user_id = ? AND account_id = ? ORDER BY id DESC";
  return (yield* rows(sql, userId, accountId)).map(apiTokenOf);
}

export function* countApiTokens(userId: number, accountId: number): Steps<number> {
  const sql = "SELECT count(*) AS held FROM api_token WHERE user_id = ? AND account_id = ?";
  return Number((yield* row(sql, userId, accountId))?.["held"]);
}

/** The removed one; null when the user has none with this id in the account. */
export function* removeApiToken(userId: number, accountId: number, id: number): Steps<ApiTokenRecord | null> {
  const sql = "DELETE FROM api_token WHERE id = ? AND user_id = ? AND account_id = ? RETURNING *";
  const found = yield* row(sql, id, userId, accountId);
  return found === undefined ? null : apiTokenOf(found);
}

export function* touchApiToken(id: number, atMs: number): Steps<void> {
  yield* change("UPDATE api_token SET last_used_ms = ? WHERE id = ?", atMs, id);
}

function apiTokenOf(found: Row): ApiTokenRecord {
  return {
    id: Number(found["id"]),
    userId: Number(found["user_id"]),
    accountId: Number(found["account_id"]),
    name: String(found["name"]),
    scopes: JSON.parse(String(found["scopes"])),
    createdMs: Number(found["created_ms"]),
    expiresMs: Number(found["expires_ms"]),
    lastUsedMs: number(found["last_used_ms"]),
  };
}
