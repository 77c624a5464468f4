import type { DatabaseSync } from "node:sqlite";
import type { ClientRecord, IdentityStore, UserRecord } from "../store.ts";
import { number, text } from "../structure-rows.ts";
import { type Row, statements, write } from "./database.ts";

export function createIdentityStore(database: DatabaseSync): IdentityStore {
  const { get, all, run } = statements(database);
  return {
    async putAccount({ id, name }) {
      const sql =
        "INSERT INTO account (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name";
      await write(database, () => run(sql, id, name));
    },
    async putClient({ id, name, secretHash, scopes }) {
      const sql = `INSERT INTO client (id, name, secret_hash, scopes) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
        SET name = excluded.name, secret_hash = excluded.secret_hash, scopes = excluded.scopes, enabled = 1`;
      const list = scopes === null ? null : JSON.stringify(scopes);
      await write(database, () => run(sql, id, name, secretHash, list));
    },
    async putUser({ username, passwordHash, roles, accounts }) {
      const sql = `INSERT INTO user (username, password_hash, roles, accounts) VALUES (?, ?, ?, ?) ON CONFLICT (username) DO UPDATE
        SET password_hash = excluded.password_hash, roles = excluded.roles, accounts = excluded.accounts, enabled = 1`;
      await write(database, () =>
        run(sql, username, passwordHash, JSON.stringify(roles), JSON.stringify(accounts)),
      );
    },
    async keepOnly(clientIds, usernames) {
      await write(database, () => {
        run(
          "UPDATE client SET enabled = 0 WHERE id NOT IN (SELECT value FROM json_each(?))",
          JSON.stringify(clientIds),
        );
        run(
          "UPDATE user SET enabled = 0 WHERE username NOT IN (SELECT value FROM json_each(?))",
          JSON.stringify(usernames),
        );
      });
    },
    async account(id) {
      const row = get("SELECT id, name FROM account WHERE id = ?", id);
      return row === undefined ? null : { id: Number(row["id"]), name: String(row["name"]) };
    },
    async client(id) {
      return clientOf(get("SELECT * FROM client WHERE id = ? AND enabled = 1", id));
    },
    async userByName(username) {
      return userOf(get("SELECT * FROM user WHERE username = ? AND enabled = 1", username));
    },
    async userById(id) {
      return userOf(get("SELECT * FROM user WHERE id = ? AND enabled = 1", id));
    },
    async touchAccount(userId, accountId) {
      await write(database, () => run("UPDATE user SET last_account_id = ? WHERE id = ?", accountId, userId));
    },
    async signingKeys() {
      return all("SELECT * FROM signing_key ORDER BY created_ms DESC, kid").map((row) => ({
        kid: String(row["kid"]),
        privateJwk: String(row["private_jwk"]),
        createdMs: Number(row["created_ms"]),
      }));
    },
    async removeSigningKeys(kids) {
      const sql = "DELETE FROM signing_key WHERE kid IN (SELECT value FROM json_each(?))";
      await write(database, () => run(sql, JSON.stringify(kids)));
    },
    async addSigningKey({ kid, privateJwk, createdMs }) {
      const sql = "INSERT INTO signing_key (kid, private_jwk, created_ms) VALUES (?, ?, ?)";
      await write(database, () => run(sql, kid, privateJwk, createdMs));
    },
  };
}

function clientOf(row: Row | undefined): ClientRecord | null {
  if (row === undefined) return null;
  const scopes = text(row["scopes"]);
  return {
    id: String(row["id"]),
    name: text(row["name"]),
    secretHash: String(row["secret_hash"]),
    scopes: scopes === null ? null : JSON.parse(scopes),
  };
}

function userOf(row: Row | undefined): UserRecord | null {
  if (row === undefined) return null;
  return {
    id: Number(row["id"]),
    username: String(row["username"]),
    passwordHash: String(row["password_hash"]),
    roles: JSON.parse(String(row["roles"])),
    accounts: JSON.parse(String(row["accounts"])),
    lastAccountId: number(row["last_account_id"]),
  };
}
