/** A new password for a user who has forgotten the former one, by a link that works once. */
import type { FastifyRequest } from "fastify";
import type { HubContext } from "../context.ts";
import { hashOfToken, newLinkSecret } from "../mail/mail.ts";
import { resetMessage } from "../mail/messages.ts";
import type { Steps } from "../store/database.ts";
import { addLink, claimLink, endLinks } from "../store/mail/links.ts";
import { queueMail } from "../store/mail/mails.ts";
import { recordAboutPerson } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import { endIdentities, endOpenings, setPassword, setProven, userById } from "../store/people/users.ts";
import { endOpenedBy } from "../store/sessions/sessions.ts";
import { defaultAccount } from "../token/rights.ts";
import { hashOf, mailChange } from "./own-password.ts";
import { ownFact, subjectOf } from "./sessions.ts";

/** Links that one address is sent in an hour at most. */
const LINKS_MAX = 5;
const LINKS_MS = 3_600_000;
export const RESET_PATH = "/password/reset";

/** Sends a link to the user of this name or address, if there is one who can use it. */
export async function sendResetLink(context: HubContext, name: string, address: string): Promise<void> {
  const { store, clock, mail } = context;
  const user =
    (await store.people.userByName(name)) ?? (name.includes("@") ? await store.people.userByEmail(name) : null);
  // Without a password here, another service signs the user in.
  if (user === null || user.state === "Inactive" || user.passwordHash === null || user.email === null) return;
  const to = user.email;
  const nowMs = clock.now().epochMilliseconds;
  if ((await store.mails.recent("reset", to, nowMs - LINKS_MS)) >= LINKS_MAX) return;
  const { token, hash } = newLinkSecret();
  const times = { createdMs: nowMs, expiresMs: nowMs + mail.validity.reset };
  const message = resetMessage({ username: user.username, link: mail.linkTo(RESET_PATH, token), ...times });
  const actor = { id: null, name: "a visitor of the page", impersonator: null, address };
  await store.people.change(function* () {
    yield* endLinks("reset", user.id, nowMs);
    yield* addLink({ purpose: "reset", subjectId: user.id, isMailed: true, hash, ...times });
    yield* queueMail({ accountId: null, kind: "reset", to, ...message, ...times });
    const fact = { atMs: nowMs, actor, action: "password.link-sent", subject: subjectOf(user) } as const;
    yield* recordAboutPerson(user.id, fact);
  });
  mail.wake();
}

/** The user of a link that can still be used; null otherwise. Does not use it. */
export async function userOfLink({ store, clock }: HubContext, token: string): Promise<UserRecord | null> {
  const id = await store.links.find("reset", hashOfToken(token), clock.now().epochMilliseconds);
  return id === null ? null : store.people.entrant(id);
}

/** Uses the link; all sessions and tokens of the user end. False when the link was used meanwhile. */
export async function resetPassword(
  context: HubContext,
  token: string,
  user: UserRecord,
  { password, request }: { readonly password: string; readonly request: FastifyRequest },
): Promise<boolean> {
  const { store, clock, mail } = context;
  const passwordHash = await hashOf(context, defaultAccount(user) ?? 0, password);
  const atMs = clock.now().epochMilliseconds;
  const done = await store.people.change(function* () {
    const link = yield* claimLink("reset", hashOfToken(token), atMs);
    if (link?.subjectId !== user.id) return false;
    if (link.isMailed) yield* prove(user.id, atMs);
    yield* endLinks("reset", user.id, atMs);
    yield* setPassword(user.id, passwordHash);
    yield* endOpenedBy(user.id, { except: null });
    const person = { user, impersonator: null };
    yield* recordAboutPerson(user.id, ownFact(person, request, { action: "password.reset", atMs }));
    if (mail.isSetUp) yield* mailChange(user, null, atMs);
    return true;
  });
  mail.wake();
  return done;
}

/** All that others may have set up before ends, but for the second factor: a mail alone never gets round one. */
function* prove(userId: number, atMs: number): Steps<void> {
  const user = yield* userById(userId);
  if (user?.provenMs === null) {
    yield* endOpenings(userId);
    yield* endIdentities(userId);
  }
  yield* setProven(userId, atMs);
}
