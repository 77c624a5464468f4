/** Writes accounts, clients and users of the configuration to the store at start. */
import type { Clock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { type HashCost, hashPassword, verifyPassword } from "#core/sign-in/passwords.ts";
import type { HubOptions } from "../options.ts";
import { refuseUnknownGrants } from "../sign-on/known-accounts.ts";
import { foldedText } from "../store/filter-sql.ts";
import type { IdentityStore } from "../store/identity.ts";
import type { TakenSeed, UserSeed } from "../store/people/seed.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";

export async function seedIdentities(
  { identity, people, refreshTokens }: Pick<HubStore, "identity" | "people" | "refreshTokens">,
  options: HubOptions,
  clock: Clock,
  cost?: HashCost,
): Promise<void> {
  const { accounts, clients, users } = options;
  refuseRepeatedIds(options);
  for (const account of accounts) await identity.putAccount(account);
  refuseUnknownAccounts(await unknownAccounts(identity, options));
  refuseUnknownGrants(options, await identity.accountIds());
  // Hashing is slow on purpose: all hashes run concurrently, up to the number of threads.
  const secrets = clients.map(async ({ id, secret }) => hashOf(secret, (await identity.client(id))?.secretHash, cost));
  const seeds = users.map(async ({ password, email = null, accounts: entered, ...user }): Promise<UserSeed> => {
    const { username, roles, adopt } = user;
    const comparedWith = await people.seedPassword(username);
    const passwordHash = await hashOf(password, comparedWith ?? undefined, cost);
    return { username, email, roles, accounts: entered, adopt, passwordHash, comparedWith };
  });
  const hashed = await Promise.all(secrets);
  // First: an entry that is refused leaves everything as it was.
  const taken = await people.seed(await Promise.all(seeds), clock.now().epochMilliseconds);
  if (taken !== null) throw inconsistent(wordsOfTaken(taken));
  for (const [index, secretHash] of hashed.entries()) {
    const client = clients[index];
    if (client === undefined) continue;
    const { id, name = null, scopes = null } = client;
    await identity.putClient({ id, name, secretHash, scopes });
  }
  const clientIds = clients.map((client) => client.id);
  await identity.keepOnly(clientIds);
  await refreshTokens.keepClients(clientIds);
}

/** The entry, the user who is there already, and both ways on. */
function wordsOfTaken({ seed, key, user, made }: TakenSeed): string {
  const by = made === null ? "by a person" : `by ${made.by} at ${isoOfMs(made.atMs)}`;
  const other = `of the user ${user.username} (${user.id}), who was made ${by} and not by this configuration`;
  return key === "username"
    ? `users: ${seed.username} is the name ${other}. Choose another name, or say \`adopt: true\` at this entry: ` +
        "password, tokens, sessions, second factor, linked identities and memberships of that user then end"
    : `users: ${seed.username}: ${seed.email} is the e-mail address ${other}. Choose another address, or say ` +
        "`adopt: true` at this entry: that user then has no address";
}

/** Throws `ConfigError` for an account, a client or a user that is configured twice. */
export function refuseRepeatedIds({ accounts, clients, users }: HubOptions): void {
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
  const emails = users.flatMap(({ email }) => email ?? []);
  refuseRepeated("users", emails.map(foldedText));
}

async function unknownAccounts(identity: IdentityStore, { users }: HubOptions) {
  const entered = users.flatMap(({ username, accounts }) => accounts.map((accountId) => ({ username, accountId })));
  const known = await Promise.all(entered.map(({ accountId }) => identity.account(accountId)));
  return entered.filter((_, index) => known[index] === null);
}

/** Throws `ConfigError` for the first of them. */
export function refuseUnknownAccounts(unknown: readonly { username: string; accountId: number }[]): void {
  const [first] = unknown;
  if (first !== undefined)
    throw inconsistent(`users: ${first.username} enters the account ${first.accountId}, which does not exist`);
}

/** An unchanged password keeps its hash. */
async function hashOf(password: string, known: string | undefined, cost?: HashCost): Promise<string> {
  if (known !== undefined && (await verifyPassword(password, known))) return known;
  return hashPassword(password, cost);
}

function refuseRepeated(list: string, ids: readonly string[]): void {
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw inconsistent(`${list}: ${twice} occurs twice`);
}

function inconsistent(message: string): ConfigError {
  return new ConfigError("HG-HUB-004", { operation: "start hub", subject: "configuration", message });
}
