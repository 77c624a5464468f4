/** Users as answers show them, at each DisplayLevel. */
import type { FastifyRequest } from "fastify";
import type { Claim, RoleName, USER_LEVELS, User } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import type { ClaimRecord } from "../store/people/claims.ts";
import type { UserRecord } from "../store/store.ts";
import { notFound, ONE } from "../structure/pages.ts";
import type { Principal } from "../token/guard.ts";
import { hasRight, isAdmin, rolesIn, rolesNamed } from "../token/rights.ts";

type Level = (typeof USER_LEVELS)[number];

export function userLevel(asked: Level | undefined, fallback: Level): "light" | "user" | "verbose" {
  const level = asked ?? fallback;
  if (level === "UserLight" || level === "Light") return "light";
  return level === "VerboseUser" || level === "Verbose" ? "verbose" : "user";
}

/** A user of the account whom the caller may see. Throws a 404 for any other. */
export async function memberFor({ store }: HubContext, request: FastifyRequest, id: number): Promise<UserRecord> {
  const { user: own, accountId } = callerOf(request);
  const isSeen = id === own.id || hasRight(own, accountId, "people");
  const { rows } = isSeen ? await store.people.members(accountId, { ids: [id] }, ONE) : { rows: [] };
  if (rows[0] === undefined) throw notFound("user", String(id));
  return rows[0];
}

export async function shownUsers(
  { store }: Pick<HubContext, "store">,
  caller: Principal,
  users: readonly UserRecord[],
  level: ReturnType<typeof userLevel>,
): Promise<readonly User[]> {
  const { accountId } = caller;
  if (level === "light") return users.map(({ id, username }) => ({ id, username }));
  if (level === "user") return users.map((user) => plain(user, accountId));
  const ids = users.map(({ id }) => id);
  const claims = Map.groupBy(await store.people.claims(accountId, ids), ({ userId }) => userId);
  return users.map((user) => ({
    ...plain(user, accountId),
    claims: (claims.get(user.id) ?? []).map(shownClaim),
    memberships: membershipsFor(caller, user),
    mustChangePassword: user.mustChangePassword,
    secondFactor: user.totp !== null && user.totp.confirmedMs !== null,
  }));
}

function plain(user: UserRecord, accountId: number): User {
  const { id, username, email, firstName, lastName, state } = user;
  const businessId = user.memberships.find((one) => one.accountId === accountId)?.businessId ?? null;
  const roles = rolesIn(user, accountId).map(shownRole);
  return { id, username, email, firstName, lastName, businessId, state, roles };
}

/** Other accounts of a user are shown to the user and to Admins alone, and not to those who act as the user. */
function membershipsFor({ user: caller, accountId, impersonator = null }: Principal, user: UserRecord) {
  const seesAll = impersonator === null && (caller.id === user.id || isAdmin(caller));
  return user.memberships
    .filter((one) => seesAll || one.accountId === accountId)
    .map((one) => ({ accountId: one.accountId, roles: rolesNamed(one.roles).map(shownRole) }));
}

export function shownRole(name: RoleName) {
  return { id: name, name };
}

export function shownClaim({ userId, type, value }: ClaimRecord): Claim {
  return { id: 0, userId, claimType: type, claimValue: value };
}
