/** Accounts, clients and users of the configuration, brought into the store at start. */
import { ConfigError } from "../../support/errors.ts";
import type { HubOptions } from "../options.ts";
import type { IdentityStore } from "../store/store.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";

export async function seedIdentities(identity: IdentityStore, options: HubOptions): Promise<void> {
  const { accounts, clients, users } = options;
  refuseRepeated(
    "accounts",
    accounts.map((account) => String(account.id)),
  );
  refuseRepeated(
    "clients",
    clients.map((client) => client.id),
  );
  refuseRepeated(
    "users",
    users.map((user) => user.username),
  );
  for (const account of accounts) await identity.putAccount(account);
  for (const { id, name, secret, scopes } of clients) {
    const known = await identity.client(id);
    const secretHash = await hashOf(secret, known?.secretHash);
    await identity.putClient({ id, name: name ?? null, secretHash, scopes: scopes ?? null });
  }
  for (const { username, password, roles, accounts: entered } of users) {
    for (const accountId of entered) {
      if ((await identity.account(accountId)) === null)
        throw inconsistent(`users: ${username} enters the account ${accountId}, which does not exist`);
    }
    const known = await identity.userByName(username);
    const passwordHash = await hashOf(password, known?.passwordHash);
    await identity.putUser({ username, passwordHash, roles, accounts: entered });
  }
  await identity.keepOnly(
    clients.map((client) => client.id),
    users.map((user) => user.username),
  );
}

/** An unchanged password keeps its hash. */
async function hashOf(password: string, known: string | undefined): Promise<string> {
  if (known !== undefined && (await verifyPassword(password, known))) return known;
  return hashPassword(password);
}

function refuseRepeated(list: string, ids: readonly string[]): void {
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw inconsistent(`${list}: ${twice} stands there twice`);
}

function inconsistent(message: string): ConfigError {
  return new ConfigError("HG-HUB-004", { operation: "start hub", subject: "configuration", message });
}
