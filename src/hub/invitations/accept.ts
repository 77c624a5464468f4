/** The invited person accepts: a new user with a temporary password, or one more account for a user of the hub. */
import type { HubContext } from "../context.ts";
import { hashOfToken, temporaryPassword } from "../mail/link-secret.ts";
import { temporaryPasswordMessage } from "../mail/messages.ts";
import type { Steps } from "../store/database.ts";
import { finishInvitation, type InvitationRecord, invitationById } from "../store/mail/invitations.ts";
import { claimLink } from "../store/mail/links.ts";
import { queueMail } from "../store/mail/mails.ts";
import { type Actor, recordAudit } from "../store/people/audit.ts";
import { createUser, putMembership, setState, userByEmail, userById, userByName } from "../store/people/users.ts";
import type { UserRecord } from "../store/store.ts";
import { mayGive, rolesNamed } from "../token/rights.ts";

export interface Acceptance {
  readonly token: string;
  readonly username: string;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly address: string;
}

export type Accepted =
  /** The temporary password is on its way. */
  | { readonly kind: "created"; readonly username: string; readonly email: string; readonly account: string }
  /** A user with this address exists, and may now enter the account. */
  | { readonly kind: "joined"; readonly username: string; readonly account: string }
  /** The link does not exist, was used, has expired, or its invitation was withdrawn. */
  | { readonly kind: "gone" }
  /** The one who invited may no longer give these roles. */
  | { readonly kind: "void"; readonly account: string }
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
} | null> {
  const nowMs = clock.now().epochMilliseconds;
  const id = token === "" ? null : await store.links.find("invitation", hashOfToken(token), nowMs);
  const invitation = id === null ? null : await store.invitations.byId(id, nowMs);
  if (invitation?.state !== "Open") return null;
  const [account, known] = await Promise.all([
    store.identity.account(invitation.accountId),
    store.people.userByEmail(invitation.email),
  ]);
  return { invitation, account: account?.name ?? String(invitation.accountId), known };
}

export async function accept(context: HubContext, acceptance: Acceptance): Promise<Accepted> {
  const { store, mail, clock } = context;
  // A hash costs much, so that a caller needs a link that works before one is made.
  const shown = await invitationOfLink(context, acceptance.token);
  if (shown === null) return { kind: "gone" };
  const password = temporaryPassword();
  const passwordHash = shown.known === null ? await context.passwords.hash(password) : null;
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
  /** Null: the address belonged to a user. */
  readonly passwordHash: string | null;
  readonly nowMs: number;
}

function* acceptSteps(work: Work, id: number): Steps<Accepted> {
  const { acceptance, account, passwordHash, nowMs } = work;
  const invitation = yield* invitationById(id, nowMs);
  if (invitation?.state !== "Open") return { kind: "gone" };
  const { accountId, email, roles, inviterId } = invitation;
  const inviter = yield* userById(inviterId);
  const mayStillGive =
    inviter !== null && inviter.state !== "Inactive" && mayGive(inviter, accountId, rolesNamed(roles));
  if (!mayStillGive) return { kind: "void", account };
  const known = yield* userByEmail(email);
  // One who was removed from the last account is invited back.
  if (known?.state === "Inactive" && known.memberships.length > 0) return { kind: "inactive" };
  const isTaken = known === null && (yield* userByName(acceptance.username)) !== null;
  if (isTaken) return { kind: "username-taken" };
  if (known === null && passwordHash === null) return { kind: "gone" };
  // Everything that may refuse is above: from here on the link is used.
  if ((yield* claimLink("invitation", hashOfToken(acceptance.token), nowMs)) !== id) return { kind: "gone" };
  if (known !== null) return yield* join(work, invitation, known);
  return yield* create(work, invitation, passwordHash);
}

function* join({ acceptance, account, nowMs }: Work, invitation: InvitationRecord, user: UserRecord): Steps<Accepted> {
  const { id, accountId, email, roles } = invitation;
  const { username } = user;
  const actor: Actor = { id: user.id, name: username, impersonator: null, address: acceptance.address };
  const isMember = user.memberships.some((one) => one.accountId === accountId);
  if (!isMember) yield* putMembership(user.id, { accountId, roles, origin: "people" });
  if (user.state === "Inactive") yield* setState(user.id, user.mustChangePassword ? "Invited" : "Active");
  yield* finishInvitation(id, "Accepted", user.id);
  const subject = { kind: "user", id: user.id, name: username } as const;
  const facts = { invitation: id, email, roles };
  yield* recordAudit(accountId, { atMs: nowMs, actor, action: "invitation.accepted", subject, facts });
  return { kind: "joined", username, account };
}

function* create(work: Work, invitation: InvitationRecord, passwordHash: string | null): Steps<Accepted> {
  const { context, acceptance, account, password, nowMs } = work;
  const { username, firstName, lastName, address } = acceptance;
  const { id, accountId, email, roles } = invitation;
  const { mail } = context;
  const untilMs = nowMs + mail.validity.temporaryPassword;
  const temporary = { passwordHash, mustChangePassword: true, temporaryUntilMs: untilMs };
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
  const link = mail.linkTo("/sign-in");
  const message = temporaryPasswordMessage({ account, username, password, link, expiresMs: untilMs });
  const sending = { accountId, kind: "temporary-password", to: email, createdMs: nowMs, expiresMs: untilMs } as const;
  yield* queueMail({ ...sending, ...message });
  return { kind: "created", username, email, account };
}
