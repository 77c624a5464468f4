/** The facts that the hub takes from the claims of a person. */

import { type Claims, fits, nameOf, type SignedOn } from "#core/sign-on/provider.ts";
import { userNameFault } from "#wire/index.ts";
import type { ExternalPerson } from "../store/sign-on/external-identities.ts";
import type { OidcProvider } from "./options.ts";

const NAME_CHARACTERS_MAX = 200;

export function personOf(settings: OidcProvider, { issuer, subject, claims }: SignedOn): ExternalPerson {
  const { createUsers, matchByEmail, usernameClaim } = settings;
  const text = (name: string) => nameOf(claims, name);
  // An address that the provider did not verify may be that of another person.
  const email = claims["email_verified"] === true ? text("email") : null;
  const names = [text(usernameClaim), email, subject.length <= NAME_CHARACTERS_MAX ? subject : null];
  return {
    issuer,
    subject,
    usernames: createUsers
      ? names.flatMap((name) => (name === null || userNameFault(name) !== null ? [] : [name]))
      : [],
    email,
    matchesEmail: matchByEmail,
    firstName: text("given_name"),
    lastName: text("family_name"),
    granted: grantedBy(settings, claims),
  };
}

// Accounts, and roles in each, by the claims of a person.

interface Granted {
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
