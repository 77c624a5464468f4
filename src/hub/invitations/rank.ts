/** Whom a manager may change, and what he may give: never more than he has himself. */
import type { FastifyRequest } from "fastify";
import { HttpProblem } from "../../wire/http-problem.ts";
import { callerOf } from "../http/access.ts";
import type { Actor } from "../store/people/audit.ts";
import type { UserRecord } from "../store/store.ts";
import { type Holder, rolesIn } from "../token/rights.ts";

/** A user who changes something in an account. */
export interface Acting {
  readonly user: UserRecord;
  readonly accountId: number;
  readonly actor: Actor;
}

export function actingOf(request: FastifyRequest): Acting {
  const { user, accountId } = callerOf(request);
  return { user, accountId, actor: { id: user.id, name: user.username, impersonator: null, address: request.ip } };
}

const RANKS: Readonly<Record<string, number>> = {
  User: 0,
  Datapusher: 1,
  "datapusher.standard": 1,
  Manager: 2,
  Admin: 3,
};

export function rankIn(user: Holder, accountId: number): number {
  return rankOf(rolesIn(user, accountId));
}

export function rankOf(roles: readonly string[]): number {
  return Math.max(0, ...roles.map((role) => RANKS[role] ?? 0));
}

/** Throws a 403 that names the role. */
export function assertMayGive(user: Holder, accountId: number, roles: readonly string[]): void {
  const above = roles.find((role) => rankOf([role]) > rankIn(user, accountId));
  if (above === undefined) return;
  const why = `the role ${above} is above your own in this account: a Manager can give it`;
  throw new HttpProblem(403, "missing-right", why);
}
