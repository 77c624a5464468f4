/** Invitations of a manager: created with their mail in one transaction, sent again, withdrawn. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { InvitationBody } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { NO_MAIL, newLinkSecret } from "../mail/mail.ts";
import { invitationMessage } from "../mail/messages.ts";
import { requireMailRoom } from "../mail/people-limits.ts";
import type { Steps } from "../store/database.ts";
import {
  addInvitation,
  finishInvitation,
  type InvitationRecord,
  invitationById,
  openInvitations,
  setMail,
} from "../store/mail/invitations.ts";
import { addLink, endLinks } from "../store/mail/links.ts";
import { queueMail } from "../store/mail/mails.ts";
import { recordAudit } from "../store/people/audit.ts";
import { userByEmail } from "../store/people/users.ts";
import { notFound } from "../structure/pages.ts";
import { changeAs } from "../users/caller.ts";
import { type Acting, assertMayGive } from "./actor.ts";

/** Open at one time in an account. */
const OPEN_MAX = 1_000;
/** Between two mails to one person. */
const AGAIN_MS = 60_000;

export async function invite(context: HubContext, acting: Acting, body: InvitationBody): Promise<InvitationRecord> {
  const { mail, clock } = context;
  const { accountId, user, actor } = acting;
  const { email, firstName = null, lastName = null } = body;
  const roles = [...new Set<string>(body.roles)];
  assertMayGive(acting, roles);
  assertMail(context);
  const account = await nameOf(context, accountId);
  const createdMs = clock.now().epochMilliseconds;
  const expiresMs = createdMs + mail.validity.invitation;
  const fresh = { accountId, email, roles, firstName, lastName, createdMs, expiresMs };
  const made = await changeAs(context, acting, "people", function* (now): Steps<InvitationRecord> {
    assertMayGive({ ...acting, user: now }, roles);
    const known = yield* userByEmail(email);
    if (known?.memberships.some((one) => one.accountId === accountId) === true)
      throw conflict(`${email} is of the user ${known.username} (${known.id}), who belongs to this account already`);
    if ((yield* openInvitations(accountId, createdMs)) >= OPEN_MAX)
      throw conflict(`${OPEN_MAX} invitations of this account are open: withdraw some, or wait until they expire`);
    const id = yield* addInvitation({ ...fresh, inviterId: user.id, inviterName: actor.name });
    if (id === null) throw conflict(`${email} is invited already: send that invitation again, or withdraw it first`);
    yield* sendLink(context, { id, accountId, account, email, inviter: actor.name, nowMs: createdMs });
    const subject = { kind: "invitation", id, name: email } as const;
    yield* recordAudit(accountId, { atMs: createdMs, actor, action: "invitation.created", subject, facts: { roles } });
    return yield* found(id, createdMs);
  });
  mail.wake();
  return made;
}

/** The link of the mail before no longer works. */
export async function sendAgain(context: HubContext, acting: Acting, id: number): Promise<InvitationRecord> {
  const { mail, clock } = context;
  const { accountId, actor } = acting;
  assertMail(context);
  const account = await nameOf(context, accountId);
  const nowMs = clock.now().epochMilliseconds;
  const sent = await changeAs(context, acting, "people", function* (now): Steps<InvitationRecord> {
    const { state, email, roles, sentMs } = yield* own(id, accountId, nowMs);
    assertMayGive({ ...acting, user: now }, roles);
    if (state !== "Open" && state !== "Expired") throw conflict(`the invitation is ${state.toLowerCase()}`);
    const waitMs = sentMs + AGAIN_MS - nowMs;
    if (waitMs > 0) {
      const why = "the last mail of this invitation was sent less than a minute ago";
      throw new HttpProblem(429, "too-many-requests", why, undefined, Math.ceil(waitMs / 1_000));
    }
    yield* endLinks("invitation", id, nowMs);
    yield* sendLink(context, { id, accountId, account, email, inviter: actor.name, nowMs });
    const subject = { kind: "invitation", id, name: email } as const;
    yield* recordAudit(accountId, { atMs: nowMs, actor, action: "invitation.sent", subject });
    return yield* found(id, nowMs);
  });
  mail.wake();
  return sent;
}

/** Its link no longer works. */
export async function withdraw(context: HubContext, acting: Acting, id: number): Promise<void> {
  const { accountId, actor } = acting;
  const nowMs = context.clock.now().epochMilliseconds;
  await changeAs(context, acting, "people", function* (): Steps<void> {
    const { email, state } = yield* own(id, accountId, nowMs);
    if (!(yield* finishInvitation(id, "Withdrawn", null))) throw conflict(`the invitation is ${state.toLowerCase()}`);
    yield* endLinks("invitation", id, nowMs);
    const subject = { kind: "invitation", id, name: email } as const;
    yield* recordAudit(accountId, { atMs: nowMs, actor, action: "invitation.removed", subject });
  });
}

interface Sending {
  readonly id: number;
  readonly accountId: number;
  readonly account: string;
  readonly email: string;
  readonly inviter: string;
  readonly nowMs: number;
}

function* sendLink(context: HubContext, { id, accountId, account, email, inviter, nowMs }: Sending): Steps<void> {
  const { mail } = context;
  yield* requireMailRoom(context, accountId, email, nowMs);
  const expiresMs = nowMs + mail.validity.invitation;
  const { token, hash } = newLinkSecret();
  yield* addLink({ purpose: "invitation", subjectId: id, hash, createdMs: nowMs, expiresMs });
  const message = invitationMessage({ account, inviter, link: mail.linkTo("/invitation", token), expiresMs });
  const sending = { accountId, kind: "invitation", to: email, createdMs: nowMs, expiresMs } as const;
  yield* setMail(id, yield* queueMail({ ...sending, ...message }), nowMs, expiresMs);
}

function* found(id: number, nowMs: number): Steps<InvitationRecord> {
  const record = yield* invitationById(id, nowMs);
  if (record === null) throw new Error(`the invitation ${id} is gone`);
  return record;
}

function* own(id: number, accountId: number, nowMs: number): Steps<InvitationRecord> {
  const record = yield* invitationById(id, nowMs);
  if (record?.accountId !== accountId) throw notFound("invitation", String(id));
  return record;
}

async function nameOf({ store }: HubContext, accountId: number): Promise<string> {
  return (await store.identity.account(accountId))?.name ?? String(accountId);
}

function assertMail({ mail }: HubContext): void {
  if (!mail.isSetUp) throw conflict(NO_MAIL);
}

function conflict(why: string): HttpProblem {
  return new HttpProblem(409, "conflict", why);
}
