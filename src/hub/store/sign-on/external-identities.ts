/** People whom a provider of single sign-on knows: who they are here, and where they may enter. */
import type { AuditAction } from "../../../wire/index.ts";
import { change, type Database, row, rows, type Steps } from "../database.ts";
import { type Actor, recordAboutPerson, recordAudit } from "../people/audit.ts";
import type { UserRecord } from "../people/records.ts";
import { createUser, putMembership, removeMembership, setState, userByEmail, userById } from "../people/users.ts";

export interface ExternalPerson {
  readonly issuer: string;
  readonly subject: string;
  /** Names for a new user: the first one that is free. Empty: no user is created. */
  readonly usernames: readonly string[];
  /** That the provider has verified; null without one. */
  readonly email: string | null;
  /** Whether the user with this address is the person. */
  readonly matchesEmail: boolean;
  readonly firstName: string | null;
  readonly lastName: string | null;
  /** The accounts in which the provider decides; without roles the person may not enter. */
  readonly granted: readonly { readonly accountId: number; readonly roles: readonly string[] }[];
}

export type Entered =
  | { readonly kind: "user"; readonly user: UserRecord }
  | { readonly kind: "unknown-user" | "name-taken" | "inactive" | "no-account" };

interface Occasion {
  readonly atMs: number;
  /** The provider. */
  readonly actor: Actor;
}

export interface ExternalIdentityStore {
  /** Finds the user, or creates one, and sets its memberships in the granted accounts: all of it or nothing. */
  enter(person: ExternalPerson, occasion: Occasion): Promise<Entered>;
}

export function createExternalIdentityStore(database: Database): ExternalIdentityStore {
  const { dialect } = database;
  return {
    enter: (person, occasion) =>
      database.write(function* () {
        const known = yield* linked(person);
        // Two first sign-ins of one person wait for each other.
        if (known === null) yield* rows(`SELECT id FROM account ORDER BY id${dialect.forUpdate("account")}`);
        const user = known ?? (yield* linked(person)) ?? (yield* newlyLinked(person, occasion));
        if (typeof user === "string") return { kind: user };
        if (user.state === "Inactive") return { kind: "inactive" };
        yield* row(`SELECT id FROM hub_user WHERE id = ?${dialect.forUpdate("hub_user")}`, user.id);
        yield* enterAccounts(user, person, occasion);
        if (user.mustChangePassword) yield* dropTemporaryPassword(user.id);
        if (user.state === "Invited") {
          yield* setState(user.id, "Active");
          yield* recordAboutPerson(user.id, factOf(user, "user.activated", occasion, {}));
        }
        const entered = yield* userById(user.id);
        if (entered === null) throw new Error(`the user ${user.id} is gone`);
        return entered.memberships.length === 0 ? { kind: "no-account" } : { kind: "user", user: entered };
      }),
  };
}

function* linked({ issuer, subject }: ExternalPerson): Steps<UserRecord | null> {
  const found = yield* row("SELECT user_id FROM external_identity WHERE issuer = ? AND subject = ?", issuer, subject);
  return found === undefined ? null : yield* userById(Number(found["user_id"]));
}

/** Of the user with the person's address, or of a new one. */
function* newlyLinked(
  person: ExternalPerson,
  occasion: Occasion,
): Steps<UserRecord | "unknown-user" | "name-taken" | "no-account" | "inactive"> {
  const { issuer, subject, email, matchesEmail, usernames, granted } = person;
  const matched = matchesEmail && email !== null ? yield* userByEmail(email) : null;
  if (matched?.state === "Inactive") return "inactive";
  if (matched === null && usernames.length === 0) return "unknown-user";
  // Anyone whom the provider knows could come: people without a grant leave nothing behind.
  if (matched === null && granted.every(({ roles }) => roles.length === 0)) return "no-account";
  const user = matched ?? (yield* created(person, occasion));
  if (user === null) return "name-taken";
  const sql = "INSERT INTO external_identity (issuer, subject, user_id, linked_ms) VALUES (?, ?, ?, ?)";
  yield* change(sql, issuer, subject, user.id, occasion.atMs);
  const by = matched === null ? "creation" : "e-mail address";
  yield* recordAboutPerson(user.id, factOf(user, "sign-on.linked", occasion, { issuer, subject, by }));
  return user;
}

/** Whom the provider knows needs none, and it was sent by mail. */
function* dropTemporaryPassword(userId: number): Steps<void> {
  const sql = `UPDATE hub_user SET password_hash = NULL, must_change_password = ?, temporary_until_ms = NULL
    WHERE id = ?`;
  yield* change(sql, false, userId);
}

function* created(person: ExternalPerson, occasion: Occasion): Steps<UserRecord | null> {
  const { usernames, email, firstName, lastName } = person;
  for (const username of usernames) {
    const facts = { username, firstName, lastName, state: "Active", passwordHash: null, origin: "people" } as const;
    let id = yield* createUser({ ...facts, email });
    // The address stays with the user who has it.
    if (id === "email-taken") id = yield* createUser({ ...facts, email: null });
    if (typeof id !== "number") continue;
    const user = yield* userById(id);
    if (user === null) throw new Error(`the user ${id} was not created`);
    for (const { accountId, roles } of person.granted)
      if (roles.length > 0) yield* recordAudit(accountId, factOf(user, "user.created", occasion, { username }));
    return user;
  }
  return null;
}

function* enterAccounts(user: UserRecord, { granted }: ExternalPerson, occasion: Occasion): Steps<void> {
  for (const { accountId, roles } of granted) {
    const before = user.memberships.find((one) => one.accountId === accountId)?.roles;
    if (roles.length === 0) {
      if (before === undefined) continue;
      yield* removeMembership(user.id, accountId);
      yield* recordAudit(accountId, factOf(user, "membership.removed", occasion, { roles: before }));
      continue;
    }
    if (before !== undefined && isSame(before, roles)) continue;
    yield* putMembership(user.id, { accountId, roles, origin: "people" });
    const fact =
      before === undefined
        ? factOf(user, "membership.added", occasion, { roles })
        : factOf(user, "roles.changed", occasion, { roles, before });
    yield* recordAudit(accountId, fact);
  }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((role) => other.includes(role));
}

function factOf(
  { id, username }: UserRecord,
  action: AuditAction,
  { atMs, actor }: Occasion,
  facts: Readonly<Record<string, unknown>>,
) {
  return { atMs, actor, action, subject: { kind: "user", id, name: username }, facts } as const;
}
