/**
 * Roles and what they allow (platform facts, *Rights and alarms*; specification, *Authentication* 6). This table is the
 * only one: the access rules of routes name its actions, and `docs/hub-rights.md` derives from both.
 */
import { ROLE_NAMES, type RoleName } from "#wire/index.ts";
import type { UserRecord } from "../store/people/records.ts";

/** Roles that may do it. */
const RIGHTS = {
  read: ["User", "Datapusher", "Manager", "Admin"],
  own: ["User", "Datapusher", "Manager", "Admin"],
  push: ["Datapusher", "Manager", "Admin"],
  structure: ["Manager", "Admin"],
  people: ["Manager", "Admin"],
  "every-account": ["Admin"],
} as const satisfies Record<string, readonly RoleName[]>;

export type Right = keyof typeof RIGHTS;

/** The least role that a refusal names. */
export const RIGHT_WORDS: Readonly<Record<Right, string>> = {
  read: "User",
  own: "User",
  push: "Datapusher (datapusher.standard)",
  structure: "Manager",
  people: "Manager",
  "every-account": "Admin",
};

/** Names of roles that configurations may have beside these. */
const ALIASES: ReadonlyMap<string, RoleName> = new Map([["datapusher.standard", "Datapusher"]]);

/** The part of a user that decides about rights. */
export type Holder = Pick<UserRecord, "memberships">;

/** By its name in any case, or an alias. */
export function roleNamed(name: string): RoleName | undefined {
  return ROLE_NAMES.find((role) => role.toLowerCase() === name.toLowerCase()) ?? ALIASES.get(name.toLowerCase());
}

/** Each once, in the order of their ranks. */
export function rolesNamed(names: readonly string[]): readonly RoleName[] {
  const known = names.map(roleNamed);
  return ROLE_NAMES.filter((role) => known.includes(role));
}

/** The roles that count in an account: those of the membership, and Admin of any. */
export function rolesIn({ memberships }: Holder, accountId: number): readonly RoleName[] {
  const own = memberships.find((one) => one.accountId === accountId)?.roles ?? [];
  return rolesNamed(isAdmin({ memberships }) ? [...own, "Admin"] : own);
}

/** Of the operator: enters every account. */
export function isAdmin({ memberships }: Holder): boolean {
  return memberships.some(({ roles }) => roles.includes("Admin"));
}

/** Roles that have the right. */
export function rolesWith(right: Right): readonly RoleName[] {
  return RIGHTS[right];
}

/** A user who may enter an account reads it, whatever the roles. */
export function hasRight(user: Holder, accountId: number, right: Right): boolean {
  const allowed: readonly RoleName[] = RIGHTS[right];
  const held: readonly RoleName[] = mayAccess(user, accountId) ? ["User", ...rolesIn(user, accountId)] : [];
  return held.some((role) => allowed.includes(role));
}

/** Admins access every account; other users those that they were given. */
export function mayAccess(user: Holder, accountId: number): boolean {
  return isAdmin(user) || user.memberships.some((one) => one.accountId === accountId);
}

export function defaultAccount(user: Pick<UserRecord, "memberships" | "lastAccountId">): number | undefined {
  const last = user.lastAccountId;
  return last !== null && mayAccess(user, last) ? last : user.memberships[0]?.accountId;
}

/** Of the highest role in the account; users without any count as `User`. */
function rankIn(user: Holder, accountId: number): number {
  return Math.max(0, ...rolesIn(user, accountId).map(rankOf));
}

function rankOf(role: RoleName): number {
  return ROLE_NAMES.indexOf(role);
}

/** The reason why a user cannot become an Admin yet, who enters every account. */
export const FOREIGN_PASSWORD =
  "another person may know the password, and would be Admin with it: the user first sets one by the link that " +
  "/password/forgot sends to the own address";

/** No user gives a role above the own one in that account. */
export function mayGive(giver: Holder, accountId: number, roles: readonly RoleName[]): boolean {
  const rank = rankIn(giver, accountId);
  return hasRight(giver, accountId, "people") && roles.every((role) => rankOf(role) <= rank);
}

/** No user changes one of a higher rank; only Managers and Admins change others at all. */
export function mayManage(manager: Holder, accountId: number, user: Holder): boolean {
  return hasRight(manager, accountId, "people") && rankIn(user, accountId) <= rankIn(manager, accountId);
}

/** Whether the manager may change what belongs to the person: a person of other accounts belongs to these, too. */
export function mayManagePerson(manager: Holder, accountId: number, user: Holder): boolean {
  const isOfOthers = user.memberships.some((one) => one.accountId !== accountId);
  return mayManage(manager, accountId, user) && (isAdmin(manager) || !isOfOthers);
}
