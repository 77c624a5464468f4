/** Sign-in by name and password alone: the token interface, Basic credentials of a push, the file-transfer server. */

import type { Passwords } from "#core/sign-in/passwords.ts";
import type { PeopleStore } from "../store/people/people.ts";
import type { UserRecord } from "../store/store.ts";

export interface NamedPassword {
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

export type PasswordSignIn =
  | { readonly kind: "user"; readonly user: UserRecord }
  | { readonly kind: "wrong" }
  /** The password is right, but does not do by itself; or there is none. */
  | { readonly kind: "refused"; readonly why: string }
  /** The password was not compared. */
  | { readonly kind: "later"; readonly why: string; readonly seconds: number };

const NO_PASSWORD =
  "the user has no password here: sign in with a browser at /sign-in, and make a personal token at /me for programs";

export async function signInByPassword(
  { people, passwords }: { readonly people: Pick<PeopleStore, "entrantByName">; readonly passwords: Passwords },
  { name, password, address }: NamedPassword,
): Promise<PasswordSignIn> {
  const user = await people.entrantByName(name);
  const verdict = await passwords.check(attemptOf(name, address), password, user?.passwordHash ?? null);
  if (verdict.kind === "later") return verdict;
  if (user?.passwordHash === null) return { kind: "refused", why: NO_PASSWORD };
  if (verdict.kind === "wrong" || user === null) return { kind: "wrong" };
  const why = passwordFault(user);
  return why === null ? { kind: "user", user } : { kind: "refused", why };
}

/** Guesses for a name count together, in whatever case they write it. */
export function attemptOf(name: string, address: string) {
  return { address, name: `user ${name.normalize("NFC").toLowerCase()}` };
}

/** Why a user with the right password has to take another way; null when the password is enough. */
export function passwordFault({ mustChangePassword, totp }: UserRecord): string | null {
  if (mustChangePassword) return "the password is temporary: sign in with a browser at /sign-in and change it first";
  if (totp !== null && totp.confirmedMs !== null)
    return "the user has a second factor: make a personal token at /me, or sign in with a browser";
  return null;
}
