/** The claims of a person whom a provider of single sign-on signed in. */
export type Claims = Readonly<Record<string, unknown>>;

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

/** Characters of a name. */
const NAME_CHARACTERS_MAX = 200;

/** A text that may name a person: neither long nor with control characters. */
export function nameOf(claims: Claims, name: string): string | null {
  const found = textOf(claims, name);
  return found === null || found.length > NAME_CHARACTERS_MAX || /\p{Cc}/u.test(found) ? null : found;
}

export interface ClaimRule {
  /** All people when absent. */
  readonly claim?: string | undefined;
  /** The claim must be this value, or a list that holds it; when absent, it must be there and not false. */
  readonly value?: string | number | boolean | undefined;
}

export function fits({ claim, value }: ClaimRule, claims: Claims): boolean {
  return claim === undefined || isClaimed(claimOf(claims, claim), value);
}

function isClaimed(claimed: unknown, value: ClaimRule["value"]): boolean {
  if (value === undefined) return !isNothing(claimed);
  const all = Array.isArray(claimed) ? claimed : [claimed];
  return all.some((one) => ["string", "number", "boolean"].includes(typeof one) && String(one) === String(value));
}

function isNothing(claimed: unknown): boolean {
  if (claimed === undefined || claimed === null || claimed === false || claimed === "") return true;
  return Array.isArray(claimed) && claimed.length === 0;
}
