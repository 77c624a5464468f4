/** A change of a user of the caller's account: who may do it, and what the audit trail records of it. */
import type { FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import type { AuditAction, RoleName } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { actorIn, subjectOf } from "../sessions/sessions.ts";
import type { Steps } from "../store/database.ts";
import { type Actor, recordAboutPerson, recordAudit } from "../store/people/audit.ts";
import type { HeldMember } from "../store/people/members.ts";
import { notFound } from "../structure/pages.ts";
import type { Principal } from "../token/guard.ts";
import { hasRight, mayGive, mayManage, mayManagePerson, rolesIn } from "../token/rights.ts";
import { lost, requireSame } from "./caller.ts";

export interface MemberChange extends Omit<HeldMember, "caller"> {
  readonly caller: Principal;
  readonly accountId: number;
  readonly nowMs: number;
  /** Of the account alone. */
  record(action: AuditAction, facts?: Readonly<Record<string, unknown>>): Steps<void>;
  /** Of the person: in every account of the user. */
  recordPerson(action: AuditAction, facts?: Readonly<Record<string, unknown>>): Steps<void>;
}

/**
 * In one transaction; `work` may throw, and then nothing is changed. Throws a 404 for a user of another account as for
 * one that does not exist, and a 403 for a user of a higher rank.
 */
export async function changeMember<T>(
  { store, clock }: HubContext,
  request: FastifyRequest,
  userId: number,
  work: (change: MemberChange) => Steps<T>,
): Promise<T> {
  const admitted = callerOf(request);
  const { accountId } = admitted;
  const actor = actorOf(request);
  const nowMs = clock.now().epochMilliseconds;
  const place = { accountId, userId, callerId: admitted.user.id };
  const result = await store.people.changeMember(place, (held) => {
    // The rights of this moment: another manager may have taken them away since the guard looked.
    const user = requireSame(admitted.user, held.caller);
    if (!hasRight(user, accountId, "people")) throw lost("people");
    if (!mayManage(user, accountId, held.user))
      throw forbidden(`the user ${held.user.username} has a higher role than you have in this account`);
    const about = (action: AuditAction, facts: Readonly<Record<string, unknown>> = {}) => ({
      ...{ atMs: nowMs, actor, action, facts },
      subject: subjectOf(held.user),
    });
    return work({
      ...{ ...held, caller: { ...admitted, user }, accountId, nowMs },
      record: (action, facts) => recordAudit(accountId, about(action, facts)),
      recordPerson: (action, facts) => recordAboutPerson(userId, about(action, facts)),
    });
  });
  if (result === "missing") throw notFound("user", String(userId));
  return result;
}

export function actorOf(request: FastifyRequest): Actor {
  const { user, impersonator = null } = callerOf(request);
  return actorIn({ user, impersonator }, request);
}

export function forbidden(why: string): HttpProblem {
  return new HttpProblem(403, "missing-right", why);
}

/** Throws a 403 where the caller may not change what belongs to the person. */
export function requirePerson({ caller, accountId, user }: Pick<MemberChange, "caller" | "accountId" | "user">): void {
  if (mayManagePerson(caller.user, accountId, user)) return;
  throw forbidden(
    `the user ${user.username} belongs to another account, too: you can change roles, claims and businessId, and ` +
      "remove the user from this account, but nothing else",
  );
}

/** Throws a 403 for a role above those of the caller. */
export function requireGivable({ user, accountId }: Principal, roles: readonly RoleName[]): void {
  if (mayGive(user, accountId, roles)) return;
  throw forbidden(`you cannot give the roles ${roles.join(", ")}: your own in this account are lower`);
}

/** Throws a 409 where the last active Manager would lose that role by the own hand. */
export function* requireOtherManager({ caller, accountId, user, hasOtherManager }: MemberChange): Steps<void> {
  const roles = rolesIn(user, accountId);
  const manages = user.state === "Active" && (roles.includes("Manager") || roles.includes("Admin"));
  if (caller.user.id !== user.id || !manages) return;
  if (yield* hasOtherManager()) return;
  const why = "you are the last active Manager of this account: make another user Manager first";
  throw new HttpProblem(409, "conflict", why);
}
