/** Second factors: offer, proof, and the codes that are taken at sign-in. */
import type { FastifyRequest } from "fastify";
import type { HubContext } from "../context.ts";
import { recordAboutPerson } from "../store/people/audit.ts";
import { endTokens } from "../store/people/users.ts";
import {
  confirmSecondFactor,
  offerSecondFactor,
  removeSecondFactor,
  replaceRecoveryCodes,
  useRecoveryCode,
  useStep,
} from "../store/sessions/second-factors.ts";
import type { UserRecord } from "../store/store.ts";
import { ownFact } from "./actor.ts";
import type { BrowserSession } from "./sessions.ts";
import { hashOfRecoveryCode, newRecoveryCodes, newTotpSecret, stepOfCode } from "./totp.ts";

export type CodeVerdict = { readonly kind: "right" | "wrong" } | { readonly kind: "later"; readonly seconds: number };

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
