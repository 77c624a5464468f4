/**
 * The invited person accepts: a new user with a temporary password, or one more account for a user of the hub, who
 * signs in first. Any manager can give a user an address, so that the one who reads its mails may be another person.
 */
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { hashOfToken, temporaryPassword } from "../mail/mail.ts";
import { temporaryPasswordMessage } from "../mail/messages.ts";
import { hashOf } from "../sessions/own-password.ts";
import type { Steps } from "../store/database.ts";
import { finishInvitation, type InvitationRecord, invitationById, lockInvitation } from "../store/mail/invitations.ts";
import { claimLink } from "../store/mail/links.ts";
import { queueMail } from "../store/mail/mails.ts";
import { countOf } from "../store/owned.ts";
import { type Actor, recordAudit } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import {
  createUser,
  endIdentities,
  endOpenings,
  isPasswordForeign,
  isStray,
  putMembership,
  reachedBy,
  setProven,
  setState,
  setTemporaryPassword,
  takenBy,
  userById,
} from "../store/people/users.ts";
import { mayGive, rolesNamed } from "../token/rights.ts";

export interface Acceptance {
  readonly token: string;
  readonly username: string;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly address: string;
  /** The user who has signed in himself in this browser; null without one. */
  readonly signedInId: number | null;
}

export type Accepted =
  /** The temporary password is on its way. */
  | { readonly kind: "created"; readonly username: string; readonly email: string; readonly account: string }
  /** A user with this address exists, and may now enter the account. */
  | { readonly kind: "joined"; readonly username: string; readonly account: string }
  /** The link does not exist, was used, has expired, or its invitation was withdrawn. */
  | { readonly kind: "gone" }
  /** The one who invited may no longer give these roles. */
  | { readonly kind: "void" | "full"; readonly account: string }
  /** The user with this address has to sign in first: the mail alone does not prove that the user is his. */
  | { readonly kind: "sign-in" }
  /** The user with this address was deactivated. */
  | { readonly kind: "inactive" }
  | { readonly kind: "username-taken" };

/** An open invitation by the token of its link, which stays usable; null when there is none. */
export async function invitationOfLink(
  { store, clock }: HubContext,
  token: string,
): Promise<{
  readonly invitation: InvitationRecord;
  readonly account: string;
  readonly known: UserRecord | null;
  /** Whether the one who accepts gets a temporary password. */
  readonly getsPassword: boolean;
} | null> {
  const nowMs = clock.now().epochMilliseconds;
  const id = token === "" ? null : await store.links.find("invitation", hashOfToken(token), nowMs);
  const invitation = id === null ? null : await store.invitations.byId(id, nowMs);
  if (invitation?.state !== "Open") return null;
  const [account, holder] = await Promise.all([
    store.identity.account(invitation.accountId),
    store.people.userByEmail(invitation.email),
  ]);
  const known = holder !== null && isStray(holder) ? null : holder;
  const name = account?.name ?? String(invitation.accountId);
  return { invitation, account: name, known, getsPassword: getsPassword(known) };
}

export async function accept(context: HubContext, acceptance: Acceptance): Promise<Accepted> {
  const { store, mail, clock } = context;
  // A hash costs much, so that a caller needs a link that works before one is made.
  const shown = await invitationOfLink(context, acceptance.token);
  if (shown === null) return { kind: "gone" };
  const password = temporaryPassword();
  const { username } = acceptance;
  if (shown.known === null && (await store.people.taken({ username })) !== null) return { kind: "username-taken" };
  const { accountId } = shown.invitation;
  const passwordHash = shown.getsPassword ? await hashOf(context, accountId, password) : null;
  const nowMs = clock.now().epochMilliseconds;
  const work = { context, acceptance, account: shown.account, password, passwordHash, nowMs };
  const accepted = await store.people.change(() => acceptSteps(work, shown.invitation.id));
  mail.wake();
  return accepted;
}

interface Work {
  readonly context: HubContext;
  readonly acceptance: Acceptance;
  readonly account: string;
  readonly password: string;
  /** Null: the address belonged to a user who has a password. */
  readonly passwordHash: string | null;
  readonly nowMs: number;
}

function* acceptSteps(work: Work, id: number): Steps<Accepted> {
  const { acceptance, account, passwordHash, nowMs } = work;
  yield* lockInvitation(id);
  const invitation = yield* invitationById(id, nowMs);
  if (invitation?.state !== "Open") return { kind: "gone" };
  const { accountId, email, roles, inviterId } = invitation;
  const inviter = yield* userById(inviterId);
  const mayStillGive =
    inviter !== null && inviter.state !== "Inactive" && mayGive(inviter, accountId, rolesNamed(roles));
  if (!mayStillGive) return { kind: "void", account };
  const known = yield* reachedBy(email);
  const isMember = known !== null && !hasLeft(known);
  if (isMember && known.state === "Inactive") return { kind: "inactive" };
  if (isMember && known.id !== acceptance.signedInId) return { kind: "sign-in" };
  const { username } = acceptance;
  if (known === null && (yield* takenBy({ username }, null)) !== null) return { kind: "username-taken" };
  if (getsPassword(known) && passwordHash === null) return { kind: "gone" };
  const isNew = known?.memberships.some((one) => one.accountId === accountId) !== true;
  const most = limitOf(work.context.options, accountId, "membership");
  if (isNew && (yield* countOf(accountId, "membership")) >= most) return { kind: "full", account };
  // Everything that may refuse is above: from here on the link is used.
  if ((yield* claimLink("invitation", hashOfToken(acceptance.token), nowMs))?.subjectId !== id) return { kind: "gone" };
  if (known !== null) return yield* join(work, invitation, known);
  return yield* create(work, invitation);
}

/** A user who was removed from the last account is invited back; the password may be one that others know. */
function hasLeft(known: UserRecord): boolean {
  return known.state === "Inactive" && known.memberships.length === 0;
}

/** A password that another person may know opens no further account. */
function getsPassword(known: UserRecord | null): boolean {
  return known === null || hasLeft(known) || isPasswordForeign(known);
}

function* join(work: Work, invitation: InvitationRecord, user: UserRecord): Steps<Accepted> {
  const { acceptance, account, nowMs, passwordHash } = work;
  const { id, accountId, email, roles } = invitation;
  const { username } = user;
  const actor: Actor = { id: user.id, name: username, impersonator: null, address: acceptance.address };
  const isMember = user.memberships.some((one) => one.accountId === accountId);
  if (!isMember) yield* putMembership(user.id, { accountId, roles, origin: "people" });
  yield* finishInvitation(id, "Accepted", user.id);
  const subject = { kind: "user", id: user.id, name: username } as const;
  const facts = { invitation: id, email, roles };
  yield* recordAudit(accountId, { atMs: nowMs, actor, action: "invitation.accepted", subject, facts });
  yield* setProven(user.id, nowMs);
  if (!getsPassword(user) || passwordHash === null) return { kind: "joined", username, account };
  if (user.provenMs === null) {
    yield* endOpenings(user.id);
    yield* endIdentities(user.id);
  }
  if (hasLeft(user)) yield* setState(user.id, "Invited");
  yield* setTemporaryPassword(user.id, passwordHash, nowMs + work.context.mail.validity.temporaryPassword);
  return yield* mailPassword(work, invitation, username);
}

function* create(work: Work, invitation: InvitationRecord): Steps<Accepted> {
  const { context, acceptance, passwordHash, nowMs } = work;
  const { username, firstName, lastName, address } = acceptance;
  const { id, accountId, email, roles } = invitation;
  const untilMs = nowMs + context.mail.validity.temporaryPassword;
  const temporary = { passwordHash, mustChangePassword: true, temporaryUntilMs: untilMs, provenMs: nowMs };
  const userId = yield* createUser({
    ...{ username, email, firstName, lastName, state: "Invited", origin: "people" },
    ...temporary,
  });
  if (typeof userId !== "number") throw new Error(`the user ${username} was created by another request meanwhile`);
  yield* putMembership(userId, { accountId, roles, origin: "people" });
  yield* finishInvitation(id, "Accepted", userId);
  const actor: Actor = { id: userId, name: username, impersonator: null, address };
  const subject = { kind: "user", id: userId, name: username } as const;
  yield* recordAudit(accountId, {
    ...{ atMs: nowMs, actor, action: "invitation.accepted", subject },
    facts: { invitation: id, email, roles },
  });
  return yield* mailPassword(work, invitation, username);
}

function* mailPassword(work: Work, { accountId, email }: InvitationRecord, username: string): Steps<Accepted> {
  const { context, account, password, nowMs } = work;
  const expiresMs = nowMs + context.mail.validity.temporaryPassword;
  const link = context.mail.linkTo("/sign-in");
  const message = temporaryPasswordMessage({ account, username, password, link, expiresMs });
  const sending = { accountId, kind: "temporary-password", to: email, createdMs: nowMs, expiresMs } as const;
  yield* queueMail({ ...sending, ...message });
  return { kind: "created", username, email, account };
}
