/** Second factors: offer, proof, and the codes that are taken at sign-in. */

import { hash, randomInt } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { Secret, TOTP } from "otpauth";
import type { Clock } from "#core/clock.ts";
import type { HubContext } from "../context.ts";
import { recordAboutPerson } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import { endTokens } from "../store/people/users.ts";
import {
  confirmSecondFactor,
  offerSecondFactor,
  removeSecondFactor,
  replaceRecoveryCodes,
  useRecoveryCode,
  useStep,
} from "../store/sessions/second-factors.ts";
import { type BrowserSession, ownFact } from "./sessions.ts";

export type CodeVerdict = { readonly kind: "right" | "wrong" } | { readonly kind: "later"; readonly seconds: number };

const PERIOD_SEC = 30;
/** Steps before and after the current one whose codes count, since clocks differ. */
const WINDOW = 1;
const SECRET_BYTES = 20;
const ISSUER = "Headgate";
const RECOVERY_CODES = 10;
/** Without digits and letters that are taken for each other. */
const LETTERS = "abcdefghjkmnpqrstuvwxyz23456789";
const GROUPS = 3;
const GROUP_LENGTH = 4;

/** A code of the app or a recovery code; each counts once. */
export async function checkCode(context: HubContext, user: UserRecord, code: string): Promise<CodeVerdict> {
  const { throttle } = context;
  // The one who asks has the password: all addresses count together.
  const attempt = { address: `second factor of user ${user.id}`, name: `second factor of user ${user.id}` };
  const seconds = throttle.begin(attempt);
  if (seconds > 0) return { kind: "later", seconds };
  return { kind: (await throttle.judge(attempt, () => isRight(context, user, code))) ? "right" : "wrong" };
}

async function isRight({ store, clock }: HubContext, { id, totp }: UserRecord, code: string): Promise<boolean> {
  if (totp === null || totp.confirmedMs === null) return false;
  const step = stepOfCode(totp.secret, code, clock);
  if (step !== null) return store.people.change(() => useStep(id, totp.secret, step));
  const recovery = hashOfRecoveryCode(code);
  return recovery !== null && (await store.people.change(() => useRecoveryCode(id, recovery)));
}

/** The secret that is offered to the user: the same one until it is confirmed. Null: there is a second factor. */
export async function offeredSecret({ store }: HubContext, { id, totp }: UserRecord): Promise<string | null> {
  if (totp !== null) return totp.confirmedMs === null ? totp.secret : null;
  const secret = newTotpSecret();
  return (await store.people.change(() => offerSecondFactor(id, secret))) ? secret : null;
}

/** Returns the recovery codes, which are shown once; null when the code is wrong. */
export async function addSecondFactor(
  { store, clock }: HubContext,
  session: BrowserSession,
  request: FastifyRequest,
  code: string,
): Promise<readonly string[] | null> {
  const { id, totp } = session.user;
  const step = totp === null ? null : stepOfCode(totp.secret, code, clock);
  if (totp === null || step === null) return null;
  const nowMs = clock.now().epochMilliseconds;
  const codes = newRecoveryCodes();
  const added = await store.people.change(function* () {
    if (!(yield* confirmSecondFactor(id, { secret: totp.secret, nowMs, step }))) return false;
    yield* replaceRecoveryCodes(id, hashesOf(codes));
    // Tokens that a password alone has given end, and so do all other sessions.
    yield* endTokens(id);
    yield* recordAboutPerson(id, ownFact(session, request, { action: "second-factor.added", atMs: nowMs }));
    return true;
  });
  return added ? codes : null;
}

/** New recovery codes in place of all former ones. */
export async function renewRecoveryCodes({ store }: HubContext, { user }: BrowserSession): Promise<readonly string[]> {
  const codes = newRecoveryCodes();
  await store.people.change(() => replaceRecoveryCodes(user.id, hashesOf(codes)));
  return codes;
}

export async function dropSecondFactor(
  { store, clock }: HubContext,
  session: BrowserSession,
  request: FastifyRequest,
): Promise<void> {
  const atMs = clock.now().epochMilliseconds;
  const { id } = session.user;
  await store.people.change(function* () {
    if (!(yield* removeSecondFactor(id))) return;
    yield* recordAboutPerson(id, ownFact(session, request, { action: "second-factor.removed", atMs }));
  });
}

function hashesOf(codes: readonly string[]): readonly string[] {
  return codes.map((code) => hashOfRecoveryCode(code) ?? "");
}

// Codes of authenticator apps (RFC 6238): six digits, 30 seconds, SHA-1, which is what all apps can do.

function newTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

/** Step of the code; null when it is wrong. */
function stepOfCode(secret: string, code: string, clock: Clock): number | null {
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

/** Each has 59 bits. */
function newRecoveryCodes(): readonly string[] {
  const group = () => Array.from({ length: GROUP_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return Array.from({ length: RECOVERY_CODES }, () => Array.from({ length: GROUPS }, group).join("-"));
}

/** However it is written: with or without hyphens and spaces, in upper or lower case. Null for anything else. */
function hashOfRecoveryCode(text: string): string | null {
  const plain = text.toLowerCase().replace(/[^a-z0-9]/g, "");
  return plain.length === GROUPS * GROUP_LENGTH ? hash("sha256", plain, "base64url") : null;
}
