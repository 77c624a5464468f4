/** People whom a provider of single sign-on knows: who they are here, and where they may enter. */
import type { AuditAction } from "#wire/index.ts";
import { change, type Database, row, type Steps } from "../database.ts";
import { type MailContent, queueMail, recentMails } from "../mail/mails.ts";
import { type Actor, recordAboutPerson, recordAudit } from "../people/audit.ts";
import { writeUnique } from "../people/people.ts";
import type { UserRecord } from "../people/records.ts";
import {
  createUser,
  dropPassword,
  endIdentities,
  endOpenings,
  isPasswordForeign,
  putMembership,
  reachedBy,
  removeMembership,
  setProven,
  setState,
  userById,
} from "../people/users.ts";
import { removeSecondFactor } from "../sessions/second-factors.ts";

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

export type Entered = { readonly kind: "user"; readonly user: UserRecord } | { readonly kind: Refusal };

type Refusal =
  | "unknown-user"
  | "name-taken"
  | "inactive"
  | "no-account"
  /** The user with the address has not proved to read its mails: one was sent there, or lately. */
  | "confirm-address"
  /** As before, and the hub sends no mails. */
  | "unproven-address";

/** The mail that asks the user with the address of a person whether both are the same. */
export interface Confirmation {
  /** Of its link. */
  readonly hash: string;
  readonly expiresMs: number;
  message(username: string): MailContent;
}

interface Occasion {
  readonly atMs: number;
  /** The provider. */
  readonly actor: Actor;
  /** Null: the hub sends no mails. */
  readonly confirmation: Confirmation | null;
}

/** Confirmations that one address is sent in an hour at most. */
const MAILS_MAX = 5;
const MAILS_MS = 3_600_000;

export interface ExternalIdentityStore {
  /** Finds the user, or creates one, and sets its memberships in the granted accounts: all of it or nothing. */
  enter(person: ExternalPerson, occasion: Occasion): Promise<Entered>;
  /** The user whom a link of a confirmation asks; null where it no longer works. Does not use it. */
  toConfirm(hash: string, nowMs: number): Promise<UserRecord | null>;
  /**
   * Uses the link: the user is the person of the provider from now on, and all that others may have set up before ends.
   * Null where the link no longer works.
   */
  confirm(hash: string, occasion: Omit<Occasion, "confirmation">): Promise<UserRecord | null>;
}

export function createExternalIdentityStore(database: Database): ExternalIdentityStore {
  const { dialect } = database;
  return {
    // Of two first sign-ins of one person, the later one begins again, and finds the link.
    enter: (person, occasion) =>
      writeUnique(database, function* (): Steps<Entered> {
        const user = (yield* linked(person)) ?? (yield* newlyLinked(person, occasion));
        if (typeof user === "string") return { kind: user };
        if (user.state === "Inactive") return { kind: "inactive" };
        yield* row(`SELECT id FROM hub_user WHERE id = ?${dialect.forUpdate("hub_user")}`, user.id);
        yield* enterAccounts(user, person, occasion);
        if (user.mustChangePassword) yield* dropPassword(user.id);
        if (user.state === "Invited") {
          yield* setState(user.id, "Active");
          yield* recordAboutPerson(user.id, factOf(user, "user.activated", occasion, {}));
        }
        const entered = yield* userById(user.id);
        if (entered === null) throw new Error(`the user ${user.id} is gone`);
        return entered.memberships.length === 0 ? { kind: "no-account" } : { kind: "user", user: entered };
      }),
    toConfirm: (hash, nowMs) =>
      database.ask(function* () {
        const found = yield* row(`SELECT user_id FROM sign_on_confirmation WHERE ${OPEN}`, hash, nowMs);
        const user = found === undefined ? null : yield* userById(Number(found["user_id"]));
        return user?.state === "Inactive" ? null : user;
      }),
    confirm: (hash, occasion) => writeUnique(database, () => confirmed(hash, occasion)),
  };
}

function* linked({ issuer, subject }: Pick<ExternalPerson, "issuer" | "subject">): Steps<UserRecord | null> {
  const found = yield* row("SELECT user_id FROM external_identity WHERE issuer = ? AND subject = ?", issuer, subject);
  return found === undefined ? null : yield* userById(Number(found["user_id"]));
}

/** Of the user with the person's address, or of a new one. */
function* newlyLinked(person: ExternalPerson, occasion: Occasion): Steps<UserRecord | Refusal> {
  const { issuer, subject, email, matchesEmail, usernames, granted } = person;
  const matched = matchesEmail && email !== null ? yield* reachedBy(email) : null;
  if (matched?.state === "Inactive") return "inactive";
  if (matched !== null && matched.provenMs === null) return yield* asked(matched, person, occasion);
  if (matched === null && usernames.length === 0) return "unknown-user";
  // Anyone whom the provider knows could come: people without a grant leave nothing behind.
  if (matched === null && granted.every(({ roles }) => roles.length === 0)) return "no-account";
  const user = matched ?? (yield* created(person, occasion));
  // Perhaps by the person, who came at the same moment.
  if (user === null) return (yield* linked(person)) ?? "name-taken";
  yield* link(user.id, { issuer, subject }, occasion.atMs);
  const by = matched === null ? "creation" : "e-mail address";
  yield* recordAboutPerson(user.id, factOf(user, "sign-on.linked", occasion, { issuer, subject, by }));
  return user;
}

function* link(
  userId: number,
  { issuer, subject }: Pick<ExternalPerson, "issuer" | "subject">,
  atMs: number,
): Steps<void> {
  const sql = "INSERT INTO external_identity (issuer, subject, user_id, linked_ms) VALUES (?, ?, ?, ?)";
  yield* change(sql, issuer, subject, userId, atMs);
}

const OPEN = "hash = ? AND expires_ms > ?";

/** A manager can give a user any address and a password: the mail goes to the user, before the person is let in. */
function* asked(
  user: UserRecord,
  { issuer, subject }: ExternalPerson,
  { atMs, confirmation }: Occasion,
): Steps<Refusal> {
  const { id, username, email } = user;
  if (confirmation === null || email === null) return "unproven-address";
  if ((yield* recentMails(KIND, email, atMs - MAILS_MS)) >= MAILS_MAX) return "confirm-address";
  const { hash, expiresMs, message } = confirmation;
  yield* change(
    `INSERT INTO sign_on_confirmation (user_id, hash, issuer, subject, expires_ms) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, issuer = excluded.issuer, subject = excluded.subject,
        expires_ms = excluded.expires_ms`,
    ...[id, hash, issuer, subject, expiresMs],
  );
  yield* queueMail({ accountId: null, kind: KIND, to: email, ...message(username), createdMs: atMs, expiresMs });
  return "confirm-address";
}

const KIND = "sign-on-confirmation";

function* confirmed(hash: string, occasion: Omit<Occasion, "confirmation">): Steps<UserRecord | null> {
  const { atMs } = occasion;
  const sql = `DELETE FROM sign_on_confirmation WHERE ${OPEN} RETURNING *`;
  const found = yield* row(sql, hash, atMs);
  const user = found === undefined ? null : yield* userById(Number(found["user_id"]));
  if (found === undefined || user === null || user.state === "Inactive") return null;
  const person = { issuer: String(found["issuer"]), subject: String(found["subject"]) };
  // Another user may have become the person meanwhile.
  if ((yield* linked(person)) !== null) return null;
  yield* endOpenings(user.id);
  yield* endIdentities(user.id);
  yield* removeSecondFactor(user.id);
  yield* dropPassword(user.id);
  yield* setProven(user.id, atMs);
  if (user.state === "Invited") yield* setState(user.id, "Active");
  yield* link(user.id, person, atMs);
  yield* recordAboutPerson(user.id, factOf(user, "sign-on.linked", occasion, { ...person, by: "confirmed address" }));
  return user;
}

function* created(person: ExternalPerson, occasion: Occasion): Steps<UserRecord | null> {
  const { usernames, email, firstName, lastName } = person;
  const { atMs } = occasion;
  for (const username of usernames) {
    const facts = { username, firstName, lastName, state: "Active", passwordHash: null, origin: "people" } as const;
    // Only a provider who verifies addresses may match them.
    let id = yield* createUser({ ...facts, email, provenMs: person.matchesEmail ? atMs : null });
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
    const isFurther = before === undefined || (roles.includes("Admin") && !before.includes("Admin"));
    if (isFurther && isPasswordForeign(user)) {
      yield* endOpenings(user.id);
      yield* dropPassword(user.id);
    }
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
  { atMs, actor }: Pick<Occasion, "atMs" | "actor">,
  facts: Readonly<Record<string, unknown>>,
) {
  return { atMs, actor, action, subject: { kind: "user", id, name: username }, facts } as const;
}
