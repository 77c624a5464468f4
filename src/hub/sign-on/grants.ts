/** Accounts, and roles in each, by the claims of a person. */
import { type Claims, fits } from "#core/sign-on/claims.ts";
import type { OidcProvider } from "./options.ts";

export interface Granted {
  readonly accountId: number;
  /** In the order of the grants; none: the person may not enter. */
  readonly roles: readonly string[];
}

/** Each account that the grants name, with what these claims give there. */
export function grantedBy({ grants }: Pick<OidcProvider, "grants">, claims: Claims): readonly Granted[] {
  const accounts = new Map<number, Set<string>>();
  for (const { accounts: entered, roles, ...rule } of grants) {
    const holds = fits(rule, claims);
    for (const accountId of entered) {
      const given = accounts.get(accountId) ?? new Set();
      accounts.set(accountId, given);
      if (holds) for (const role of roles) given.add(role);
    }
  }
  return [...accounts].map(([accountId, roles]) => ({ accountId, roles: [...roles] }));
}
