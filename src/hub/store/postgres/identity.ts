import type pg from "pg";
import type { ClientRecord, IdentityStore, UserRecord } from "../store.ts";
import { number, text } from "../structure-rows.ts";
import { type Row, sqlOn, transact } from "./database.ts";

export function createIdentityStore(pool: pg.Pool): IdentityStore {
  const { get, all, run } = sqlOn(pool);
  return {
    putAccount: ({ id, name }) =>
      transact(pool, async (sql) => {
        await sql.run(
          "INSERT INTO account (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
          id,
          name,
        );
        for (const table of ["lane", "structure_change"])
          await sql.run(`INSERT INTO ${table} (account_id) VALUES (?) ON CONFLICT DO NOTHING`, id);
      }),
    async putClient({ id, name, secretHash, scopes }) {
      const sql = `INSERT INTO client (id, name, secret_hash, scopes) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
        SET name = excluded.name, secret_hash = excluded.secret_hash, scopes = excluded.scopes, enabled = TRUE`;
      await run(sql, id, name, secretHash, scopes === null ? null : JSON.stringify(scopes));
    },
    async putUser({ username, passwordHash, roles, accounts }) {
      const sql = `INSERT INTO hub_user (username, password_hash, roles, accounts) VALUES (?, ?, ?, ?) ON CONFLICT (username) DO UPDATE
        SET password_hash = excluded.password_hash, roles = excluded.roles, accounts = excluded.accounts, enabled = TRUE`;
      await run(sql, username, passwordHash, JSON.stringify(roles), JSON.stringify(accounts));
    },
    keepOnly: (clientIds, usernames) =>
      transact(pool, async (sql) => {
        await sql.run("UPDATE client SET enabled = FALSE WHERE enabled AND id <> ALL (?)", clientIds);
        await sql.run("UPDATE hub_user SET enabled = FALSE WHERE enabled AND username <> ALL (?)", usernames);
      }),
    async account(id) {
      const row = await get("SELECT id, name FROM account WHERE id = ?", id);
      return row === undefined ? null : { id: Number(row["id"]), name: String(row["name"]) };
    },
    async client(id) {
      return clientOf(await get("SELECT * FROM client WHERE id = ? AND enabled", id));
    },
    async userByName(username) {
      return userOf(await get("SELECT * FROM hub_user WHERE username = ? AND enabled", username));
    },
    async userById(id) {
      return userOf(await get("SELECT * FROM hub_user WHERE id = ? AND enabled", id));
    },
    async touchAccount(userId, accountId) {
      await run("UPDATE hub_user SET last_account_id = ? WHERE id = ?", accountId, userId);
    },
    async signingKeys() {
      const rows = await all("SELECT * FROM signing_key ORDER BY created_ms DESC, kid");
      return rows.map((row) => ({
        kid: String(row["kid"]),
        privateJwk: String(row["private_jwk"]),
        createdMs: Number(row["created_ms"]),
      }));
    },
    async removeSigningKeys(kids) {
      await run("DELETE FROM signing_key WHERE kid = ANY (?)", kids);
    },
    async addSigningKey({ kid, privateJwk, createdMs }) {
      const sql = "INSERT INTO signing_key (kid, private_jwk, created_ms) VALUES (?, ?, ?)";
      await run(sql, kid, privateJwk, createdMs);
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
