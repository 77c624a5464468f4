/** New users of an account, made by its managers. */
import type { FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import type { RoleName, UserBody } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField } from "../http/problems.ts";
import { actingOf } from "../invitations/actor.ts";
import { temporaryPassword } from "../mail/link-secret.ts";
import { NO_MAIL } from "../mail/mail.ts";
import { temporaryPasswordMessage } from "../mail/messages.ts";
import { requireMailRoom } from "../mail/people-limits.ts";
import { hashOf, passwordFault } from "../sessions/own-password.ts";
import type { Steps } from "../store/database.ts";
import { queueMail } from "../store/mail/mails.ts";
import { requireFew } from "../store/owned.ts";
import { type Actor, recordAudit } from "../store/people/audit.ts";
import { createUser, type NewUser, putMembership } from "../store/people/users.ts";
import { changeAs } from "./caller.ts";
import { conflict, takenProblem } from "./edit.ts";
import { actorOf, requireGivable } from "./member-change.ts";

/** The place of a new user, and who gives it. */
export interface NewPlace {
  readonly accountId: number;
  readonly roles: readonly RoleName[];
  readonly businessId: string | null;
  readonly actor: Actor;
  readonly nowMs: number;
  /** Users that the account may have. */
  readonly most: number;
}

/** For use inside a write. Throws `AccountFull`, and a 409 for names that are taken. */
function* addUserTo(user: NewUser, { accountId, roles, businessId, actor, nowMs, most }: NewPlace): Steps<number> {
  yield* requireFew(accountId, "membership", most);
  const id = yield* createUser(user);
  if (typeof id === "string") throw takenProblem(id);
  if (!(yield* putMembership(id, { accountId, roles, businessId, origin: "people" })))
    throw conflict("businessId", `another user of this account has ${businessId}`);
  const subject = { kind: "user", id, name: user.username } as const;
  yield* recordAudit(accountId, { atMs: nowMs, actor, action: "user.created", subject, facts: { roles } });
  return id;
}

/** Returns the id. Without a password, a temporary one is sent by mail. */
export async function createMember(context: HubContext, request: FastifyRequest, body: UserBody): Promise<number> {
  const caller = callerOf(request);
  const { accountId } = caller;
  const { email = null, firstName = null, lastName = null, businessId = null } = body;
  const username = body.username ?? body.email;
  const roles = [...new Set(body.roles ?? ["User" as const])];
  if (username === undefined) throw invalidField("username", "is missing (or an email, which then is the name)");
  if (body.state === "Inactive")
    throw invalidField("state", "a new user can sign in: POST /account/users/{id}/deactivate ends that");
  requireGivable(caller, roles);
  const sent = body.password === undefined ? mailedPassword(context, email) : null;
  const password = body.password ?? temporaryPassword();
  if (body.password !== undefined) requireFit(password, username, email);
  const taken = await context.store.people.taken({ username, email });
  if (taken !== null) throw takenProblem(taken);
  const passwordHash = await hashOf(context, accountId, password);
  const nowMs = context.clock.now().epochMilliseconds;
  const mustChangePassword = sent !== null || body.mustChangePassword !== false;
  const temporaryUntilMs = mustChangePassword ? nowMs + context.mail.validity.temporaryPassword : null;
  const state = mustChangePassword ? "Invited" : "Active";
  // The one who reads the mails of the address alone knows a password that was sent there.
  const provenMs = sent === null ? null : nowMs;
  const user = { username, email, firstName, lastName, state, passwordHash, mustChangePassword, provenMs } as const;
  const account = (await context.store.identity.account(accountId))?.name ?? String(accountId);
  const most = limitOf(context.options, accountId, "membership");
  const place = { accountId, roles, businessId, actor: actorOf(request), nowMs, most };
  const id = await changeAs(context, actingOf(request), "people", function* (now) {
    requireGivable({ ...caller, user: now }, roles);
    const made = yield* addUserTo({ ...user, temporaryUntilMs, origin: "people" }, place);
    if (sent !== null && temporaryUntilMs !== null) {
      yield* requireMailRoom(context, accountId, sent, nowMs);
      const link = context.mail.linkTo("/sign-in");
      const message = temporaryPasswordMessage({ account, username, password, link, expiresMs: temporaryUntilMs });
      const times = { createdMs: nowMs, expiresMs: temporaryUntilMs };
      yield* queueMail({ accountId, kind: "temporary-password", to: sent, ...message, ...times });
    }
    return made;
  });
  if (sent !== null) context.mail.wake();
  return id;
}

/** The address to which it goes. Throws where it cannot be sent. */
function mailedPassword({ mail }: HubContext, email: string | null): string {
  if (email === null) throw invalidField("email", "is missing: without a password, a temporary one is sent there");
  if (!mail.isSetUp) throw new HttpProblem(409, "conflict", `${NO_MAIL}; or give the user a password`);
  return email;
}

function requireFit(password: string, username: string, email: string | null): void {
  const why = passwordFault(password, { username, email });
  if (why !== null) throw invalidField("password", why);
}
