/** A link to set a new password, without a mail: its reader is the user, or a manager who passes it on. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import { newLinkSecret } from "../mail/mail.ts";
import type { Steps } from "../store/database.ts";
import { addLink } from "../store/mail/links.ts";
import { recordAboutPerson } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import { hasIdentity, setProven } from "../store/people/users.ts";
import { notFound } from "../structure/pages.ts";
import { hasRight, mayManage, mayManagePerson } from "../token/rights.ts";
import { changeAs, lost, requireSame } from "../users/caller.ts";
import type { Acting } from "./actor.ts";

export interface MadeLink {
  readonly link: string;
  readonly expiresMs: number;
}

/** `userId`: null for the caller's own. */
export async function makePasswordLink(context: HubContext, acting: Acting, userId: number | null): Promise<MadeLink> {
  const { store, mail, clock } = context;
  const { actor, accountId } = acting;
  if (actor.impersonator !== null)
    throw forbidden("who acts as another user makes no link to a password: sign out first");
  const { token, hash } = newLinkSecret();
  const nowMs = clock.now().epochMilliseconds;
  const expiresMs = nowMs + mail.validity.reset;
  const add = function* (user: UserRecord): Steps<void> {
    // A user without both was made by a file of master data, and sets the first password by the link.
    if (user.passwordHash === null && (yield* hasIdentity(user.id)))
      throw new HttpProblem(409, "conflict", `${user.username} has no password here: another service knows it`);
    const isOwn = user.id === acting.user.id;
    // From here on a manager can choose the password.
    if (!isOwn) yield* setProven(user.id, null);
    const made = { purpose: "reset", subjectId: user.id, hash, createdMs: nowMs, expiresMs } as const;
    yield* addLink(isOwn ? made : { ...made, makerId: acting.user.id });
    const subject = { kind: "user", id: user.id, name: user.username } as const;
    yield* recordAboutPerson(user.id, { atMs: nowMs, actor, action: "password.link-made", subject });
  };
  if (userId === null || userId === acting.user.id) await changeAs(context, acting, "own", add);
  else {
    if (!hasRight(acting.user, accountId, "people"))
      throw forbidden("only a Manager makes links for other users; leave out UserId for your own");
    // Nor does the user enter another account meanwhile.
    const made = await store.people.changeMember({ accountId, userId, callerId: acting.user.id }, (held) => {
      requireManaged(held.user, requireSame(acting.user, held.caller), accountId);
      return add(held.user);
    });
    if (made === "missing") throw notFound("user", String(userId));
  }
  return { link: mail.linkTo("/password/reset", token), expiresMs };
}

/** A password opens every account of its user: a manager of one of them may not set it. */
function requireManaged(user: UserRecord, manager: UserRecord, accountId: number): void {
  if (!hasRight(manager, accountId, "people")) throw lost("people");
  if (!mayManage(manager, accountId, user)) throw forbidden(`the user ${user.username} has a higher role than you`);
  if (!mayManagePerson(manager, accountId, user))
    throw forbidden(`the user ${user.username} belongs to other accounts, too: only the user himself asks for a link`);
  if (user.state === "Inactive") throw new HttpProblem(409, "conflict", `the user ${user.username} is deactivated`);
}

function forbidden(why: string): HttpProblem {
  return new HttpProblem(403, "missing-right", why);
}
