/** Users of the configuration: what people changed afterwards stays, unless their entry says something new. */
import { change, type Row, row, rows, type Steps } from "../database.ts";
import { foldedText } from "../filter-sql.ts";
import { jsonOf, text } from "../structure-rows.ts";
import { type Actor, CONFIGURATION, recordAboutPerson } from "./audit.ts";
import { addUser, putMembership, setPassword, setState } from "./users.ts";

/** An entry of the configuration. */
export interface UserSeed {
  readonly username: string;
  readonly email: string | null;
  readonly roles: readonly string[];
  readonly accounts: readonly number[];
  /** PHC string of its password: `comparedWith`, where the password is still that one. */
  readonly passwordHash: string;
  readonly comparedWith: string | null;
}

/** The hash of the password that the entry of this user had when it was applied last. */
export function* seedPassword(username: string): Steps<string | null> {
  const found = yield* row("SELECT seed_password_hash FROM hub_user WHERE username = ?", username);
  return text(found?.["seed_password_hash"]);
}

export function* applySeed(seed: UserSeed, atMs: number): Steps<void> {
  const { username, email, passwordHash } = seed;
  const facts = factsOf(seed);
  const known = yield* row("SELECT * FROM hub_user WHERE username = ?", username);
  const applied = text(known?.["seed_password_hash"]);
  // Another node that starts may have applied it meanwhile.
  const isSamePassword = applied === passwordHash || (applied !== null && applied !== seed.comparedWith);
  if (isSamePassword && known?.["seed_facts"] === facts) return;
  const id = known === undefined ? yield* addSeed(seed) : Number(known["id"]);
  if (known !== undefined && !isSamePassword) yield* setPassword(id, passwordHash);
  const isOther = known === undefined || known["seed_facts"] !== facts;
  if (isOther) yield* applyFacts(id, seed);
  if (known !== undefined && applied === null) yield* setState(id, "Active");
  yield* change(
    "UPDATE hub_user SET origin = 'configuration', seed_password_hash = ?, seed_facts = ? WHERE id = ?",
    ...[isSamePassword ? applied : passwordHash, facts, id],
  );
  // Stores of earlier versions have no facts: nothing changes for their users.
  if (known !== undefined && known["seed_facts"] === null && isSamePassword) return;
  yield* record(id, username, known === undefined ? "user.created" : "user.changed", atMs, {
    roles: seed.roles,
    accounts: seed.accounts,
    ...(email === null ? {} : { email }),
    ...(isSamePassword ? {} : { password: "as configured" }),
  });
}

/** Users of the configuration that are no longer in it may not sign in. */
export function* deactivateOthers(usernames: readonly string[], atMs: number): Steps<void> {
  const listed = yield* rows(
    "SELECT id, username FROM hub_user WHERE origin = 'configuration' AND state <> 'Inactive'",
  );
  for (const one of listed.filter((row) => !usernames.includes(String(row["username"])))) {
    const id = Number(one["id"]);
    yield* setState(id, "Inactive");
    // When its entry comes back, it is a new one.
    yield* change("UPDATE hub_user SET seed_password_hash = NULL, seed_facts = NULL WHERE id = ?", id);
    yield* record(id, String(one["username"]), "user.deactivated", atMs, {});
  }
}

function* addSeed({ username, email, passwordHash }: UserSeed): Steps<number> {
  const key = foldedText(username);
  const isTaken = (yield* row("SELECT 1 FROM hub_user WHERE username_key = ?", key)) !== undefined;
  const free = (yield* ownsEmail(email, 0)) ? email : null;
  const user = { username, email: free, state: "Active", passwordHash, origin: "configuration" } as const;
  return yield* addUser(user, isTaken ? null : key);
}

/** An address that another user has stays with that one. */
function* ownsEmail(email: string | null, id: number): Steps<boolean> {
  if (email === null) return false;
  const found = yield* row("SELECT id FROM hub_user WHERE email_key = ? AND id <> ?", foldedText(email), id);
  return found === undefined;
}

function* applyFacts(id: number, { email, roles, accounts }: UserSeed): Steps<void> {
  if (email !== null && (yield* ownsEmail(email, id)))
    yield* change("UPDATE hub_user SET email = ?, email_key = ? WHERE id = ?", email, foldedText(email), id);
  const entered: readonly Row[] = yield* rows("SELECT account_id, origin FROM membership WHERE user_id = ?", id);
  for (const one of entered) {
    const accountId = Number(one["account_id"]);
    if (one["origin"] !== "configuration" || accounts.includes(accountId)) continue;
    yield* change("DELETE FROM membership WHERE user_id = ? AND account_id = ?", id, accountId);
  }
  for (const [place, accountId] of accounts.entries()) {
    yield* putMembership(id, { accountId, roles, origin: "configuration" });
    const sql = "UPDATE membership SET origin = 'configuration', place = ? WHERE user_id = ? AND account_id = ?";
    // Before those that people added.
    yield* change(sql, place - accounts.length, id, accountId);
  }
}

function factsOf({ email, roles, accounts }: UserSeed): string {
  return jsonOf({ email, roles, accounts });
}

function record(
  id: number,
  name: string,
  action: "user.created" | "user.changed" | "user.deactivated",
  atMs: number,
  facts: Readonly<Record<string, unknown>>,
): Steps<void> {
  const actor: Actor = CONFIGURATION;
  return recordAboutPerson(id, { atMs, actor, action, subject: { kind: "user", id, name }, facts });
}
