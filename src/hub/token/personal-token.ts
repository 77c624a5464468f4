/** The form of personal API tokens, by which programs of a person call the hub. */
import { hash, randomBytes } from "node:crypto";

const PREFIX = "hgp_";

export function newPersonalToken(): string {
  return `${PREFIX}${randomBytes(32).toString("base64url")}`;
}

export function isPersonalToken(value: string): boolean {
  return value.startsWith(PREFIX);
}

/** Its value is random and long, so that a fast hash without a salt is enough. */
export function hashOfPersonalToken(value: string): string {
  return hash("sha256", value, "hex");
}
