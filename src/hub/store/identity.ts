/** Accounts, clients, users and the keys that sign tokens. */
import { change, type Database, type Row, row, rows } from "./database.ts";
import type { ClientRecord, IdentityStore, UserRecord } from "./store.ts";
import { number, text } from "./structure-rows.ts";

export function createIdentityStore(database: Database): IdentityStore {
  const { users } = database.dialect;
  return {
    ...writers(database),
    ...keys(database),
    account: (id) =>
      database.ask(function* () {
        const found = yield* row("SELECT id, name FROM account WHERE id = ?", id);
        return found === undefined ? null : { id: Number(found["id"]), name: String(found["name"]) };
      }),
    accountIds: () =>
      database.ask(function* () {
        return (yield* rows("SELECT id FROM account ORDER BY id")).map((one) => Number(one["id"]));
      }),
    client: (id) =>
      database.ask(function* () {
        return clientOf(yield* row("SELECT * FROM client WHERE id = ? AND enabled", id));
      }),
    userByName: (username) =>
      database.ask(function* () {
        return userOf(yield* row(`SELECT * FROM ${users} WHERE username = ? AND enabled`, username));
      }),
    userById: (id) =>
      database.ask(function* () {
        return userOf(yield* row(`SELECT * FROM ${users} WHERE id = ? AND enabled`, id));
      }),
  };
}

function writers(
  database: Database,
): Pick<IdentityStore, "putAccount" | "putClient" | "putUser" | "keepOnly" | "touchAccount"> {
  const { users, accountTables, among } = database.dialect;
  return {
    putAccount: ({ id, name }) =>
      database.write(function* () {
        const sql = "INSERT INTO account (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name";
        yield* change(sql, id, name);
        for (const table of accountTables)
          yield* change(`INSERT INTO ${table} (account_id) VALUES (?) ON CONFLICT DO NOTHING`, id);
      }),
    async putClient({ id, name, secretHash, scopes }) {
      const sql = `INSERT INTO client (id, name, secret_hash, scopes) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
          SET name = excluded.name, secret_hash = excluded.secret_hash, scopes = excluded.scopes, enabled = TRUE`;
      await database.run(sql, id, name, secretHash, scopes === null ? null : JSON.stringify(scopes));
    },
    async putUser({ username, passwordHash, roles, accounts }) {
      const sql = `INSERT INTO ${users} (username, password_hash, roles, accounts) VALUES (?, ?, ?, ?)
          ON CONFLICT (username) DO UPDATE SET password_hash = excluded.password_hash, roles = excluded.roles,
            accounts = excluded.accounts, enabled = TRUE`;
      await database.run(sql, username, passwordHash, JSON.stringify(roles), JSON.stringify(accounts));
    },
    keepOnly: (clientIds, usernames) =>
      database.write(function* () {
        const disable = (table: string, column: string) =>
          `UPDATE ${table} SET enabled = FALSE WHERE enabled AND NOT (${among(column)})`;
        yield* change(disable("client", "id"), clientIds);
        yield* change(disable(users, "username"), usernames);
      }),
    async touchAccount(userId, accountId) {
      const sql = `UPDATE ${users} SET last_account_id = ? WHERE id = ?`;
      await database.run(sql, accountId, userId);
    },
  };
}

function keys(database: Database): Pick<IdentityStore, "signingKeys" | "removeSigningKeys" | "addSigningKey"> {
  return {
    signingKeys: () =>
      database.ask(function* () {
        const found = yield* rows("SELECT * FROM signing_key ORDER BY created_ms DESC, kid");
        return found.map((one) => ({
          kid: String(one["kid"]),
          privateJwk: String(one["private_jwk"]),
          createdMs: Number(one["created_ms"]),
        }));
      }),
    async removeSigningKeys(kids) {
      const sql = `DELETE FROM signing_key WHERE ${database.dialect.among("kid")}`;
      await database.run(sql, kids);
    },
    async addSigningKey({ kid, privateJwk, createdMs }) {
      const sql = "INSERT INTO signing_key (kid, private_jwk, created_ms) VALUES (?, ?, ?)";
      await database.run(sql, kid, privateJwk, createdMs);
    },
  };
}

function clientOf(found: Row | undefined): ClientRecord | null {
  if (found === undefined) return null;
  const scopes = text(found["scopes"]);
  return {
    id: String(found["id"]),
    name: text(found["name"]),
    secretHash: String(found["secret_hash"]),
    scopes: scopes === null ? null : JSON.parse(scopes),
  };
}

function userOf(found: Row | undefined): UserRecord | null {
  if (found === undefined) return null;
  return {
    id: Number(found["id"]),
    username: String(found["username"]),
    passwordHash: String(found["password_hash"]),
    roles: JSON.parse(String(found["roles"])),
    accounts: JSON.parse(String(found["accounts"])),
    lastAccountId: number(found["last_account_id"]),
  };
}
