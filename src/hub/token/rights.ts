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

export function hasRight(user: UserRecord, right: Right): boolean {
  return user.roles.some((role) => RIGHTS[role]?.includes(right) === true);
}

/** Admins access every account; other users those that they were given. */
export function mayAccess(user: UserRecord, accountId: number): boolean {
  return user.accounts.includes(accountId) || hasRight(user, "every-account");
}

export function defaultAccount(user: UserRecord): number | undefined {
  const last = user.lastAccountId;
  return last !== null && mayAccess(user, last) ? last : user.accounts[0];
}
