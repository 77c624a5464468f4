/** Roles and what they allow (platform facts, *Rights and alarms*; specification, *Authentication* 6). */
import type { UserRecord } from "../store/store.ts";

export type Right = "push" | "structure" | "every-account";

export const RIGHT_WORDS: Readonly<Record<Right, string>> = {
  push: "Datapusher (datapusher.standard)",
  structure: "Manager",
  "every-account": "Admin",
};

const RIGHTS: Readonly<Record<string, readonly Right[]>> = {
  User: [],
  Datapusher: ["push"],
  "datapusher.standard": ["push"],
  Manager: ["push", "structure"],
  Admin: ["push", "structure", "every-account"],
};

/** The part of a user that decides about rights. */
export type Holder = Pick<UserRecord, "memberships">;

/** The roles that count in an account: those of the membership, and Admin of any. */
export function rolesIn({ memberships }: Holder, accountId: number): readonly string[] {
  const own = memberships.find((one) => one.accountId === accountId)?.roles ?? [];
  return isAdmin({ memberships }) && !own.includes("Admin") ? [...own, "Admin"] : own;
}

/** Of the operator: enters every account. */
export function isAdmin({ memberships }: Holder): boolean {
  return memberships.some(({ roles }) => roles.includes("Admin"));
}

export function hasRight(user: Holder, accountId: number, right: Right): boolean {
  return rolesIn(user, accountId).some((role) => RIGHTS[role]?.includes(right) === true);
}

/** Admins access every account; other users those that they were given. */
export function mayAccess(user: Holder, accountId: number): boolean {
  return isAdmin(user) || user.memberships.some((one) => one.accountId === accountId);
}

export function defaultAccount(user: Pick<UserRecord, "memberships" | "lastAccountId">): number | undefined {
  const last = user.lastAccountId;
  return last !== null && mayAccess(user, last) ? last : user.memberships[0]?.accountId;
}
