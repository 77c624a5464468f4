/** Accounts, and roles in each, by the claims of a person. */
import type { OidcProvider } from "./options.ts";

export type Claims = Readonly<Record<string, unknown>>;

export interface Granted {
  readonly accountId: number;
  /** In the order of the grants; none: the person may not enter. */
  readonly roles: readonly string[];
}

/** Each account that the grants name, with what these claims give there. */
export function grantedBy({ grants }: Pick<OidcProvider, "grants">, claims: Claims): readonly Granted[] {
  const accounts = new Map<number, Set<string>>();
  for (const { claim, value, accounts: entered, roles } of grants) {
    const holds = claim === undefined || isClaimed(claimOf(claims, claim), value);
    for (const accountId of entered) {
      const given = accounts.get(accountId) ?? new Set();
      accounts.set(accountId, given);
      if (holds) for (const role of roles) given.add(role);
    }
  }
  return [...accounts].map(([accountId, roles]) => ({ accountId, roles: [...roles] }));
}

/** A claim of this very name comes before a path: providers use addresses as names. */
export function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split(".").reduce<unknown>((at, part) => {
    if (typeof at !== "object" || at === null || Array.isArray(at) || !Object.hasOwn(at, part)) return undefined;
    return (at as Claims)[part];
  }, claims);
}

/** A text among the claims; null when there is none. */
export function textOf(claims: Claims, name: string): string | null {
  const value = claimOf(claims, name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}

function isClaimed(claimed: unknown, value: string | number | boolean | undefined): boolean {
  if (value === undefined) return !isNothing(claimed);
  const all = Array.isArray(claimed) ? claimed : [claimed];
  return all.some((one) => ["string", "number", "boolean"].includes(typeof one) && String(one) === String(value));
}

function isNothing(claimed: unknown): boolean {
  if (claimed === undefined || claimed === null || claimed === false || claimed === "") return true;
  return Array.isArray(claimed) && claimed.length === 0;
}
