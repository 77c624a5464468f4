/** Users and where they may enter. The functions are for use inside a write, whose caller records the change. */
import { readAs } from "#wire/index.ts";
import { change, insert, type Row, row, rows, type Steps } from "../database.ts";
import { foldedText, type SqlValue } from "../filter-sql.ts";
import { jsonOf } from "../structure-rows.ts";
import { USER_ORDER, USER_ROWS, type UserOrigin, type UserRecord, type UserState, usersOf } from "./records.ts";

export interface NewUser {
  readonly username: string;
  readonly email?: string | null;
  readonly firstName?: string | null;
  readonly lastName?: string | null;
  readonly state: UserState;
  readonly passwordHash: string | null;
  readonly mustChangePassword?: boolean;
  readonly temporaryUntilMs?: number | null;
  readonly provenMs?: number | null;
  readonly origin: UserOrigin;
}

/** Absent: as it is. */
export interface UserChange {
  readonly username?: string | undefined;
  readonly email?: string | null | undefined;
  readonly firstName?: string | null | undefined;
  readonly lastName?: string | null | undefined;
}

export interface NewMembership {
  readonly accountId: number;
  readonly roles: readonly string[];
  /** Absent: as it is. */
  readonly businessId?: string | null;
  readonly origin: UserOrigin;
}

/** `username-taken` and `email-taken`: another user has it, perhaps in another case. */
export type Taken = "username-taken" | "email-taken";

export function* userById(id: number): Steps<UserRecord | null> {
  return yield* one("hub_user.id = ?", id);
}

/** The user of exactly this name, or else the one whose name differs by case alone. */
export function* userByName(username: string): Steps<UserRecord | null> {
  return (yield* one("username = ?", username)) ?? (yield* one("username_key = ?", foldedText(username)));
}

export function* userByEmail(email: string): Steps<UserRecord | null> {
  return yield* one("email_key = ?", foldedText(email));
}

/**
 * The user whom the address reaches. A deactivated user who never proved it holds it no longer, since any manager can
 * give it to one, and would keep its owner out of all other accounts.
 */
export function* reachedBy(email: string): Steps<UserRecord | null> {
  const user = yield* userByEmail(email);
  if (user === null || !isStray(user)) return user;
  yield* set(user.id, { email: null, email_key: null });
  yield* endMailedLinks(user.id);
  return null;
}

/** Deactivated in an account, and without a proof of the address. One who left all accounts is invited back. */
export function isStray({ state, provenMs, memberships }: UserRecord): boolean {
  return state === "Inactive" && provenMs === null && memberships.length > 0;
}

export function* createUser(user: NewUser): Steps<number | Taken> {
  const taken = yield* takenBy(user, null);
  if (taken !== null) return taken;
  return yield* addUser(user, foldedText(user.username));
}

/** `usernameKey`: null where an older user has the name but for its case. */
export function* addUser(user: NewUser, usernameKey: string | null): Steps<number> {
  return yield* insert("hub_user", {
    username: user.username,
    username_key: usernameKey,
    email: user.email,
    email_key: keyOf(user.email),
    first_name: user.firstName,
    last_name: user.lastName,
    state: user.state,
    password_hash: user.passwordHash,
    must_change_password: user.mustChangePassword === true,
    temporary_until_ms: user.temporaryUntilMs,
    proven_ms: user.provenMs,
    origin: user.origin,
  });
}

export function* changeUser(id: number, { username, email, firstName, lastName }: UserChange): Steps<Taken | null> {
  const taken = yield* takenBy({ username, email }, id);
  if (taken !== null) return taken;
  yield* set(id, {
    ...(username === undefined ? {} : { username, username_key: foldedText(username) }),
    ...(email === undefined ? {} : { email, email_key: keyOf(email), proven_ms: null }),
    ...(firstName === undefined ? {} : { first_name: firstName }),
    ...(lastName === undefined ? {} : { last_name: lastName }),
  });
  if (email !== undefined) yield* endMailedLinks(id);
  return null;
}

/** The user's own password: tokens and sessions of the one before end. */
export function* setPassword(id: number, passwordHash: string): Steps<void> {
  yield* set(id, { password_hash: passwordHash, must_change_password: false, temporary_until_ms: null });
  // The first own password ends an invitation.
  yield* change("UPDATE hub_user SET state = 'Active' WHERE id = ? AND state = 'Invited'", id);
  yield* endTokens(id);
  yield* endPasswordLinks(id);
}

/** A password that the user must change, until a time. */
export function* setTemporaryPassword(id: number, passwordHash: string, untilMs: number): Steps<void> {
  yield* set(id, { password_hash: passwordHash, must_change_password: true, temporary_until_ms: untilMs });
  yield* endTokens(id);
  yield* endPasswordLinks(id);
}

/** One that may no longer sign in loses tokens and sessions, personal ones as well. */
export function* setState(id: number, state: UserState): Steps<void> {
  yield* set(id, { state });
  if (state !== "Inactive") return;
  yield* endTokens(id);
  yield* endPasswordLinks(id);
  yield* change("DELETE FROM api_token WHERE user_id = ?", id);
}

/** Access tokens and sessions of the user end; personal tokens stay. */
export function* endTokens(id: number): Steps<void> {
  yield* change("UPDATE hub_user SET token_generation = token_generation + 1 WHERE id = ?", id);
}

/** By a mail to the address; null: no longer, since another person gets to know a password. */
export function* setProven(id: number, atMs: number | null): Steps<void> {
  yield* set(id, { proven_ms: atMs });
}

/** Whether another person may know the password, who then must not enter with it what the user enters. */
export function isPasswordForeign({ provenMs, passwordHash }: UserRecord): boolean {
  return provenMs === null && passwordHash !== null;
}

/**
 * Tokens, personal ones as well, sessions, also of others who act as the user, and links end. The caller sets or drops
 * the password.
 */
export function* endOpenings(id: number): Steps<void> {
  yield* endTokens(id);
  yield* endMailedLinks(id);
  yield* change("DELETE FROM api_token WHERE user_id = ?", id);
  yield* change("DELETE FROM session WHERE user_id = ? OR impersonator_id = ?", id, id);
}

/** Links to a new password, and to the confirmation of a person of a provider. */
function* endMailedLinks(id: number): Steps<void> {
  yield* endPasswordLinks(id);
  yield* change("DELETE FROM sign_on_confirmation WHERE user_id = ?", id);
}

export function* hasIdentity(id: number): Steps<boolean> {
  return (yield* row("SELECT 1 FROM external_identity WHERE user_id = ? LIMIT 1", id)) !== undefined;
}

export function* endIdentities(id: number): Steps<void> {
  yield* change("DELETE FROM external_identity WHERE user_id = ?", id);
}

/** Another service signs the user in. */
export function* dropPassword(id: number): Steps<void> {
  yield* set(id, { password_hash: null, must_change_password: false, temporary_until_ms: null });
}

/**
 * Links to a new password that were made before: the user has another password or address since, or belongs to one
 * account more, into which no manager of the others may lead himself.
 */
function* endPasswordLinks(id: number): Steps<void> {
  yield* change("DELETE FROM one_time_link WHERE purpose = 'reset' AND subject_id = ? AND used_ms IS NULL", id);
  yield* endMadeLinks(id);
}

/** Links to the passwords of others: the manager who made them has them, and perhaps no longer the right. */
function* endMadeLinks(makerId: number): Steps<void> {
  yield* change("DELETE FROM one_time_link WHERE maker_id = ? AND used_ms IS NULL", makerId);
}

/** Makes an account the user's default: the last one that was used. */
export function* touchAccount(id: number, accountId: number): Steps<void> {
  yield* set(id, { last_account_id: accountId });
}

/** Adds the membership, or changes its roles. False: another user of the account has the business id. */
export function* putMembership(userId: number, membership: NewMembership): Steps<boolean> {
  const { accountId, roles, businessId, origin } = membership;
  if (typeof businessId === "string") {
    const sql = "SELECT 1 FROM membership WHERE account_id = ? AND business_id = ? AND user_id <> ?";
    if ((yield* row(sql, accountId, businessId, userId)) !== undefined) return false;
  }
  const known = yield* row(
    "SELECT CAST(roles AS TEXT) AS roles FROM membership WHERE user_id = ? AND account_id = ?",
    userId,
    accountId,
  );
  if (known === undefined) yield* endPasswordLinks(userId);
  else if (known["roles"] !== jsonOf(roles)) yield* endMadeLinks(userId);
  const last = yield* row("SELECT coalesce(max(place), -1) AS place FROM membership WHERE user_id = ?", userId);
  yield* change(
    `INSERT INTO membership (user_id, account_id, place, roles, origin) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (user_id, account_id) DO UPDATE SET roles = excluded.roles`,
    ...[userId, accountId, Number(last?.["place"]) + 1, jsonOf(roles), origin],
  );
  if (businessId !== undefined) {
    const sql = "UPDATE membership SET business_id = ? WHERE user_id = ? AND account_id = ?";
    yield* change(sql, businessId, userId, accountId);
  }
  return true;
}

/** With the claims and personal tokens of the user there, and invitations by which he would return. */
export function* removeMembership(userId: number, accountId: number): Steps<boolean> {
  yield* change("DELETE FROM api_token WHERE user_id = ? AND account_id = ?", userId, accountId);
  yield* change(
    `UPDATE invitation SET state = 'Withdrawn' WHERE account_id = ? AND state = 'Open'
      AND email_key = (SELECT email_key FROM hub_user WHERE id = ?)`,
    accountId,
    userId,
  );
  yield* endMadeLinks(userId);
  return (yield* change("DELETE FROM membership WHERE user_id = ? AND account_id = ?", userId, accountId)) > 0;
}

function* one(condition: string, value: SqlValue): Steps<UserRecord | null> {
  const found: readonly Row[] = yield* rows(`${USER_ROWS} WHERE ${condition} ${USER_ORDER}`, value);
  return usersOf(found)[0] ?? null;
}

/** A name that a person may read as that of another user is taken, too. */
export function* takenBy({ username, email }: UserChange, id: number | null): Steps<Taken | null> {
  const isFree = function* (column: string, text: string | null | undefined): Steps<boolean> {
    if (typeof text !== "string") return true;
    const found = yield* row(`SELECT id FROM hub_user WHERE ${column} = ? AND id <> ?`, foldedText(text), id ?? 0);
    return found === undefined;
  };
  // Users sign in by their address as well, and ask for a new password by it.
  const read = typeof username === "string" && readAs(username) !== foldedText(username) ? readAs(username) : null;
  for (const name of [username, read])
    for (const column of ["username_key", "email_key"]) if (!(yield* isFree(column, name))) return "username-taken";
  return (yield* isFree("email_key", email)) ? null : "email-taken";
}

function keyOf(text: string | null | undefined): string | null | undefined {
  return typeof text === "string" ? foldedText(text) : text;
}

function* set(id: number, columns: Readonly<Record<string, SqlValue | undefined>>): Steps<void> {
  const names = Object.keys(columns);
  if (names.length === 0) return;
  const sql = `UPDATE hub_user SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`;
  yield* change(sql, ...Object.values(columns).map((value) => value ?? null), id);
}
