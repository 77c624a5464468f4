/** A user who changes something in an account, by the interface or by a page. */
import type { FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import { callerOf } from "../http/access.ts";
import { actorIn } from "../sessions/sessions.ts";
import type { Actor } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import { mayGive, rolesNamed } from "../token/rights.ts";

export interface Acting {
  readonly user: UserRecord;
  readonly accountId: number;
  readonly actor: Actor;
}

export function actingOf(request: FastifyRequest): Acting {
  const { user, accountId, impersonator = null } = callerOf(request);
  return { user, accountId, actor: actorIn({ user, impersonator }, request) };
}

/** Throws a 403. */
export function assertMayGive({ user, accountId }: Acting, roles: readonly string[]): void {
  if (mayGive(user, accountId, rolesNamed(roles))) return;
  const why = `you may not give the roles ${roles.join(", ")} in this account: only those up to your own`;
  throw new HttpProblem(403, "missing-right", why);
}
