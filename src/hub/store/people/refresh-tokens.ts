/** Refresh tokens: each is used once, and all that follow from one sign-in are a family, which ends as a whole. */
import { change, type Database, type Row, row } from "../database.ts";

export interface RefreshToken {
  /** SHA-256 of the token, which is not kept. */
  readonly hash: string;
  readonly family: string;
  readonly accountId: number;
  readonly userId: number;
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** As of access tokens (`generationOf`). */
  readonly generation: string;
  readonly expiresMs: number;
}

interface Rotation {
  readonly next: RefreshToken;
  readonly nowMs: number;
  /** A token that was used is taken again for so long, since the answer may not have come. */
  readonly graceMs: number;
}

export interface RefreshTokenStore {
  add(token: RefreshToken): Promise<void>;
  find(hash: string): Promise<RefreshToken | null>;
  /** `ended`: the token was used before, or is no longer there; its family has ended. */
  rotate(current: RefreshToken, rotation: Rotation): Promise<"rotated" | "ended">;
  endFamily(family: string): Promise<void>;
  /** Ends those of all other clients. */
  keepClients(clientIds: readonly string[]): Promise<void>;
  /** Removes those that have expired. */
  purge(nowMs: number): Promise<void>;
}

export function createRefreshTokenStore(database: Database): RefreshTokenStore {
  const { dialect } = database;
  return {
    add: (token) => database.write(() => added(token)),
    find: (hash) =>
      database.ask(function* () {
        return tokenOf(yield* row("SELECT * FROM refresh_token WHERE hash = ?", hash));
      }),
    rotate: ({ hash, family }, { next, nowMs, graceMs }) =>
      database.write(function* () {
        const lock = dialect.forUpdate("refresh_token");
        const found = yield* row(`SELECT used_ms FROM refresh_token WHERE hash = ?${lock}`, hash);
        const usedMs = found?.["used_ms"] ?? null;
        if (found === undefined || (usedMs !== null && nowMs - Number(usedMs) > graceMs)) {
          yield* change("DELETE FROM refresh_token WHERE family = ?", family);
          return "ended";
        }
        if (usedMs === null) yield* change("UPDATE refresh_token SET used_ms = ? WHERE hash = ?", nowMs, hash);
        yield* added(next);
        return "rotated";
      }),
    async endFamily(family) {
      await database.run("DELETE FROM refresh_token WHERE family = ?", family);
    },
    async keepClients(clientIds) {
      await database.run(`DELETE FROM refresh_token WHERE NOT (${dialect.among("client_id")})`, clientIds);
    },
    async purge(nowMs) {
      await database.run("DELETE FROM refresh_token WHERE expires_ms <= ?", nowMs);
    },
  };
}

function* added({ hash, family, accountId, userId, clientId, scopes, generation, expiresMs }: RefreshToken) {
  const sql = `INSERT INTO refresh_token
    (hash, family, account_id, user_id, client_id, scopes, generation, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
  yield* change(sql, hash, family, accountId, userId, clientId, scopes.join(" "), generation, expiresMs);
}

function tokenOf(found: Row | undefined): RefreshToken | null {
  if (found === undefined) return null;
  return {
    hash: String(found["hash"]),
    family: String(found["family"]),
    accountId: Number(found["account_id"]),
    userId: Number(found["user_id"]),
    clientId: String(found["client_id"]),
    scopes: String(found["scopes"]).split(" "),
    generation: String(found["generation"]),
    expiresMs: Number(found["expires_ms"]),
  };
}
