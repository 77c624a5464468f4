/** The facts that the hub takes from the claims of a person. */

import { nameOf } from "#core/sign-on/claims.ts";
import type { SignedOn } from "#core/sign-on/provider.ts";
import { userNameFault } from "#wire/index.ts";
import type { ExternalPerson } from "../store/sign-on/external-identities.ts";
import { grantedBy } from "./grants.ts";
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
