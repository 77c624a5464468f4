/** Secrets that travel in mails. */
import { hash, randomBytes } from "node:crypto";
import { randomDigits } from "#core/random.ts";

const TOKEN_BYTES = 32;
/** Without letters and digits that look alike. */
const LEGIBLE = "abcdefghijkmnpqrstuvwxyz23456789";
const GROUPS = 4;
const GROUP_LENGTH = 4;

export interface LinkSecret {
  /** Part of the link; never stored. */
  readonly token: string;
  readonly hash: string;
}

export function newLinkSecret(): LinkSecret {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return { token, hash: hashOfToken(token) };
}

/** The token is random and long, so that a fast hash without a salt is safe. */
export function hashOfToken(token: string): string {
  return hash("sha256", token, "base64url");
}

/** Of 80 bits, and easy to type: `kq3m-x7pa-…`. */
export function temporaryPassword(): string {
  return Array.from({ length: GROUPS }, () => randomDigits(GROUP_LENGTH, LEGIBLE)).join("-");
}
