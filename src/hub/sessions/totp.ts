/** Codes of authenticator apps (RFC 6238): six digits, 30 seconds, SHA-1, which is what all apps can do. */
import { hash, randomInt } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import type { Clock } from "#core/clock.ts";

const PERIOD_SEC = 30;
/** Steps before and after the current one whose codes count, since clocks differ. */
const WINDOW = 1;
const SECRET_BYTES = 20;
const ISSUER = "Headgate";

export function newTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

/** Step of the code; null when it is wrong. */
export function stepOfCode(secret: string, code: string, clock: Clock): number | null {
  const token = code.replace(/[\s-]/g, "");
  if (!/^\d{6}$/.test(token)) return null;
  const timestamp = clock.now().epochMilliseconds;
  const delta = totpOf(secret, "").validate({ token, timestamp, window: WINDOW });
  return delta === null ? null : Math.floor(timestamp / 1_000 / PERIOD_SEC) + delta;
}

/** The address that a QR code brings to an app. */
export function totpUri(secret: string, username: string): string {
  return totpOf(secret, username).toString();
}

function totpOf(secret: string, label: string): TOTP {
  return new TOTP({ issuer: ISSUER, label, secret: Secret.fromBase32(secret), period: PERIOD_SEC, digits: 6 });
}

const RECOVERY_CODES = 10;
/** Without digits and letters that are taken for each other. */
const LETTERS = "abcdefghjkmnpqrstuvwxyz23456789";
const GROUPS = 3;
const GROUP_LENGTH = 4;

/** Each has 59 bits. */
export function newRecoveryCodes(): readonly string[] {
  const group = () => Array.from({ length: GROUP_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return Array.from({ length: RECOVERY_CODES }, () => Array.from({ length: GROUPS }, group).join("-"));
}

/** However it is written: with or without hyphens and spaces, in upper or lower case. Null for anything else. */
export function hashOfRecoveryCode(text: string): string | null {
  const plain = text.toLowerCase().replace(/[^a-z0-9]/g, "");
  return plain.length === GROUPS * GROUP_LENGTH ? hash("sha256", plain, "base64url") : null;
}
