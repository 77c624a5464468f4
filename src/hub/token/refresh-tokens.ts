/** Refresh tokens of the token interface (`docs/hub-choices.md`, *Tokens and rights*). */
import { hash, randomBytes, randomUUID } from "node:crypto";
import { OAuthError } from "#wire/token-endpoint.ts";
import type { HubContext } from "../context.ts";
import type { RefreshToken } from "../store/people/refresh-tokens.ts";

const BYTES = 32;

export interface GivenToken {
  readonly value: string;
  readonly lifetimeSec: number;
}

type Facts = Omit<RefreshToken, "hash" | "family" | "expiresMs">;

/** The first of a family. */
export async function newRefreshToken(context: HubContext, facts: Facts): Promise<GivenToken> {
  const { given, token } = made(context, { ...facts, family: randomUUID() });
  await context.store.refreshTokens.add(token);
  return given;
}

/** Throws an `invalid_grant`, also where the token was given to another client. */
export async function knownRefreshToken(
  { store, clock }: HubContext,
  value: string,
  clientId: string,
): Promise<RefreshToken> {
  const token = await store.refreshTokens.find(hashOf(value));
  if (token === null || token.clientId !== clientId || token.expiresMs <= clock.now().epochMilliseconds)
    throw refused("it is unknown, has expired, or is of another client");
  return token;
}

/** The token that follows. A second use ends the family: one of both callers has stolen it. */
export async function rotatedRefreshToken(context: HubContext, current: RefreshToken): Promise<GivenToken> {
  const { store, clock, options, log } = context;
  const { given, token: next } = made(context, current);
  const nowMs = clock.now().epochMilliseconds;
  const rotation = { next, nowMs, graceMs: options.refreshTokens.grace };
  if ((await store.refreshTokens.rotate(current, rotation)) === "rotated") return given;
  const { userId, clientId, accountId } = current;
  log.warn({ userId, clientId, account: accountId }, "a refresh token was used twice; all that follow from it ended");
  throw refused("it was used before, so that all that follow from it have ended");
}

export async function endedRefreshToken({ store }: HubContext, { family }: RefreshToken): Promise<OAuthError> {
  await store.refreshTokens.endFamily(family);
  return refused("the user was deactivated, or the password, the second factor or the client secret changed");
}

function made({ clock, options }: HubContext, facts: Facts & Pick<RefreshToken, "family">) {
  const { lifetime } = options.refreshTokens;
  const value = randomBytes(BYTES).toString("base64url");
  const expiresMs = clock.now().epochMilliseconds + lifetime;
  const token: RefreshToken = { ...facts, hash: hashOf(value), expiresMs };
  return { token, given: { value, lifetimeSec: Math.round(lifetime / 1_000) } };
}

function hashOf(value: string): string {
  return hash("sha256", value, "base64url");
}

function refused(why: string): OAuthError {
  return new OAuthError(400, "invalid_grant", `the refresh token is not valid: ${why}; sign in again`);
}
