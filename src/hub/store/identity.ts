/** Accounts, clients and the keys that sign tokens. */
import { change, type Database, type Row, row, rows } from "./database.ts";
import { text } from "./structure-rows.ts";

export interface ClientRecord {
  readonly id: string;
  readonly name: string | null;
  /** PHC string. */
  readonly secretHash: string;
  /** Null: every scope. */
  readonly scopes: readonly string[] | null;
}

interface SigningKey {
  readonly kid: string;
  /** JSON Web Key with its private part, as JSON. */
  readonly privateJwk: string;
  readonly createdMs: number;
}

export interface IdentityStore {
  putAccount(account: { readonly id: number; readonly name: string }): Promise<void>;
  putClient(client: ClientRecord): Promise<void>;
  /** Disables clients that are not listed; their records stay. */
  keepOnly(clientIds: readonly string[]): Promise<void>;
  account(id: number): Promise<{ readonly id: number; readonly name: string } | null>;
  /** Ids of all accounts, in their order. */
  accountIds(): Promise<readonly number[]>;
  /** Enabled ones only. */
  client(id: string): Promise<ClientRecord | null>;
  /** Newest first. */
  signingKeys(): Promise<readonly SigningKey[]>;
  addSigningKey(key: SigningKey): Promise<void>;
  removeSigningKeys(kids: readonly string[]): Promise<void>;
}

export function createIdentityStore(database: Database): IdentityStore {
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
  };
}

function writers(database: Database): Pick<IdentityStore, "putAccount" | "putClient" | "keepOnly"> {
  const { accountTables, among } = database.dialect;
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
    async keepOnly(clientIds) {
      await database.run(`UPDATE client SET enabled = FALSE WHERE enabled AND NOT (${among("id")})`, clientIds);
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
