/** Users of the configuration: what people changed afterwards stays, unless their entry says something new. */
import { change, type Row, row, rows, type Steps } from "../database.ts";
import { foldedText } from "../filter-sql.ts";
import { removeSecondFactor } from "../sessions/second-factors.ts";
import { jsonOf, text } from "../structure-rows.ts";
import { type Actor, CONFIGURATION, recordAboutPerson } from "./audit.ts";
import {
  addUser,
  changeUser,
  endIdentities,
  endOpenings,
  putMembership,
  removeMembership,
  setPassword,
  setProven,
  setState,
} from "./users.ts";

/** An entry of the configuration. */
export interface UserSeed {
  readonly username: string;
  readonly email: string | null;
  readonly roles: readonly string[];
  readonly accounts: readonly number[];
  /** Whether it takes over a user, or the address of one, whom people made. */
  readonly adopt: boolean;
  /** PHC string of its password: `comparedWith`, where the password is still that one. */
  readonly passwordHash: string;
  readonly comparedWith: string | null;
}

/** An entry whose name or address a user has who was made by people. */
export interface TakenSeed {
  readonly seed: UserSeed;
  readonly key: "username" | "email";
  readonly user: { readonly id: number; readonly username: string };
  /** Null: the audit trail does not say. */
  readonly made: { readonly by: string; readonly atMs: number } | null;
}

/** The hash of the password that the entry of this user had when it was applied last. */
export function* seedPassword(username: string): Steps<string | null> {
  const found = yield* row("SELECT seed_password_hash FROM hub_user WHERE username = ?", username);
  return text(found?.["seed_password_hash"]);
}

/** Null where the entry may be applied: it adopts, or meets users of the configuration alone. */
export function* takenSeed(seed: UserSeed): Steps<TakenSeed | null> {
  if (seed.adopt) return null;
  const known = yield* userOf(seed);
  if (known?.["origin"] === "people") return yield* taken(seed, "username", known);
  if (known?.["seed_facts"] === factsOf(seed)) return null;
  const holder = yield* holderOf(seed.email, Number(known?.["id"] ?? 0));
  return holder?.["origin"] === "people" ? yield* taken(seed, "email", holder) : null;
}

function* taken(seed: UserSeed, key: TakenSeed["key"], user: Row): Steps<TakenSeed> {
  const id = Number(user["id"]);
  const made = yield* row(
    `SELECT at_ms, actor_name FROM audit WHERE subject_kind = 'user' AND subject_id = ?
      AND action IN ('user.created', 'invitation.accepted') ORDER BY id LIMIT 1`,
    String(id),
  );
  return {
    ...{ seed, key, user: { id, username: String(user["username"]) } },
    made: made === undefined ? null : { by: String(made["actor_name"]), atMs: Number(made["at_ms"]) },
  };
}

/** The user of the name; else one made by people whose name differs by case alone. */
function* userOf({ username }: UserSeed): Steps<Row | undefined> {
  const alike = "SELECT * FROM hub_user WHERE username_key = ? AND origin = 'people'";
  return (
    (yield* row("SELECT * FROM hub_user WHERE username = ?", username)) ?? (yield* row(alike, foldedText(username)))
  );
}

export function* applySeed(seed: UserSeed, atMs: number): Steps<void> {
  const { username, email, passwordHash } = seed;
  const facts = factsOf(seed);
  const known = yield* userOf(seed);
  const applied = isForeign(known, seed) ? null : text(known?.["seed_password_hash"]);
  // Another node that starts may have applied it meanwhile.
  const isSamePassword = applied === passwordHash || (applied !== null && applied !== seed.comparedWith);
  if (isSamePassword && known?.["seed_facts"] === facts) return;
  const id = known === undefined ? yield* addSeed(seed, atMs) : Number(known["id"]);
  const isAdopted = known?.["origin"] === "people";
  // People may have used it until now, or activated one whose entry had left.
  if (known !== undefined && applied === null) yield* endFormerOwner(id, seed, atMs);
  if (known !== undefined && !isSamePassword) yield* setPassword(id, passwordHash);
  const isOther = known === undefined || known["seed_facts"] !== facts;
  if (isOther) yield* applyFacts(id, seed);
  if (known !== undefined && known["seed_password_hash"] === null) yield* setState(id, "Active");
  yield* change(
    "UPDATE hub_user SET origin = 'configuration', seed_password_hash = ?, seed_facts = ? WHERE id = ?",
    ...[isSamePassword ? applied : passwordHash, facts, id],
  );
  yield* record(id, username, known === undefined ? "user.created" : "user.changed", atMs, {
    roles: seed.roles,
    accounts: seed.accounts,
    ...(email === null ? {} : { email }),
    ...(isSamePassword ? {} : { password: "as configured" }),
    ...(isAdopted ? { adopted: true } : {}),
  });
}

/** Whether the entry leads further than before, and a Manager may have given its user an address or a link. */
function isForeign(known: Row | undefined, { roles, accounts }: UserSeed): boolean {
  const facts = text(known?.["seed_facts"]);
  if (facts === null || known?.["proven_ms"] !== null) return false;
  const before: Pick<UserSeed, "roles" | "accounts"> = JSON.parse(facts);
  const gains = (role: string) => roles.includes(role) && !before.roles.includes(role);
  return gains("Admin") || accounts.some((id) => !before.accounts.includes(id));
}

/** All by which a former owner could sign in, or read a mail of the user. The password is set afterwards. */
function* endFormerOwner(id: number, { username, accounts }: UserSeed, atMs: number): Steps<void> {
  yield* endOpenings(id);
  yield* endIdentities(id);
  yield* removeSecondFactor(id);
  yield* setProven(id, atMs);
  yield* change("DELETE FROM user_claim WHERE user_id = ?", id);
  const entered = yield* rows("SELECT account_id FROM membership WHERE user_id = ?", id);
  for (const accountId of entered.map((one) => Number(one["account_id"])))
    if (!accounts.includes(accountId)) yield* removeMembership(id, accountId);
  const sql = "UPDATE hub_user SET username = ?, email = NULL, email_key = NULL, last_account_id = NULL WHERE id = ?";
  yield* change(sql, username, id);
}

/** Users of the configuration that are no longer in it may not sign in. */
export function* deactivateOthers(usernames: readonly string[], atMs: number): Steps<void> {
  const listed = yield* rows(
    `SELECT id, username, state FROM hub_user
      WHERE origin = 'configuration' AND (state <> 'Inactive' OR seed_password_hash IS NOT NULL)`,
  );
  for (const one of listed.filter((row) => !usernames.includes(String(row["username"])))) {
    const id = Number(one["id"]);
    yield* setState(id, "Inactive");
    // When its entry comes back, it is a new one.
    yield* change("UPDATE hub_user SET seed_password_hash = NULL, seed_facts = NULL WHERE id = ?", id);
    if (one["state"] !== "Inactive") yield* record(id, String(one["username"]), "user.deactivated", atMs, {});
  }
}

function* addSeed({ username, passwordHash }: UserSeed, atMs: number): Steps<number> {
  const key = foldedText(username);
  const isTaken = (yield* row("SELECT 1 FROM hub_user WHERE username_key = ?", key)) !== undefined;
  const user = { username, state: "Active", passwordHash, provenMs: atMs, origin: "configuration" } as const;
  return yield* addUser(user, isTaken ? null : key);
}

/** Another user who has the address. */
function* holderOf(email: string | null, id: number): Steps<Row | undefined> {
  if (email === null) return undefined;
  return yield* row("SELECT * FROM hub_user WHERE email_key = ? AND id <> ?", foldedText(email), id);
}

function* applyFacts(id: number, { email, roles, accounts }: UserSeed): Steps<void> {
  if (email !== null) {
    const holder = yield* holderOf(email, id);
    if (holder !== undefined) yield* changeUser(Number(holder["id"]), { email: null });
    yield* change("UPDATE hub_user SET email = ?, email_key = ? WHERE id = ?", email, foldedText(email), id);
  }
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
