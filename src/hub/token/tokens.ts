/** Access tokens: JWT (ES256) signed by a key of the ring. */
import { hash, randomUUID } from "node:crypto";
import { type JWTPayload, jwtVerify, SignJWT } from "jose";
import { JOSEError } from "jose/errors";
import type { Clock } from "#core/clock.ts";
import type { UserRecord } from "../store/people/records.ts";
import { ALGORITHM, type KeyRing } from "./keys.ts";

const VERIFIED_MAX = 2_000;

export interface TokenClaims {
  readonly userId: number;
  readonly accountId: number;
  readonly scopes: readonly string[];
  readonly clientId: string;
  /**
   * Generation of the password and the client secret that it was issued for (`generationOf`); absent in tokens of the
   * hub itself (`inner.ts`).
   */
  readonly generation?: string | undefined;
}

type Ending = Pick<UserRecord, "passwordHash" | "tokenGeneration">;

/** Changes when the password or the client secret is changed. It is a salted hash and reveals nothing about them. */
export function generationOf(user: Ending, client: { readonly secretHash: string }): string {
  return hash("sha256", `${userGeneration(user)} ${client.secretHash}`, "base64url").slice(0, 22);
}

/** The part of it that depends on the user: changes when all tokens and sessions of the user end. */
export function userGeneration({ passwordHash, tokenGeneration }: Ending): string {
  return tokenGeneration === 0 ? `${passwordHash}` : `${passwordHash} ${tokenGeneration}`;
}

export interface Tokens {
  issue(claims: TokenClaims, facts: { readonly username: string; readonly issuer: string }): Promise<string>;
  /** Null when the token is not ours, altered or expired. */
  verify(token: string): Promise<TokenClaims | null>;
}

export function createTokens(
  keys: KeyRing,
  { lifetimeMs, clock }: { readonly lifetimeMs: number; readonly clock: Clock },
): Tokens {
  const verified = new Map<string, { claims: TokenClaims; expiresMs: number }>();

  return {
    async issue({ userId, accountId, scopes, clientId, generation }, { username, issuer }) {
      const nowSec = Math.floor(clock.now().epochMilliseconds / 1_000);
      const { kid, key } = await keys.signer();
      const claims = { account: accountId, scope: scopes.join(" "), name: username, client_id: clientId };
      return new SignJWT({ ...claims, generation })
        .setProtectedHeader({ alg: ALGORITHM, typ: "at+jwt", kid })
        .setSubject(String(userId))
        .setIssuer(issuer)
        .setJti(randomUUID())
        .setIssuedAt(nowSec)
        .setExpirationTime(nowSec + Math.round(lifetimeMs / 1_000))
        .sign(key);
    },
    async verify(token) {
      const nowMs = clock.now().epochMilliseconds;
      const known = verified.get(token);
      if (known !== undefined) return known.expiresMs > nowMs ? known.claims : null;
      const payload = await checked(token, keys, new Date(nowMs));
      const claims = payload === null ? null : claimsOf(payload);
      if (claims === null || payload?.exp === undefined) return null;
      const oldest = verified.size >= VERIFIED_MAX ? verified.keys().next().value : undefined;
      if (oldest !== undefined) verified.delete(oldest);
      verified.set(token, { claims, expiresMs: payload.exp * 1_000 });
      return claims;
    },
  };
}

class UnknownKey extends Error {}

async function checked(token: string, keys: KeyRing, currentDate: Date): Promise<JWTPayload | null> {
  try {
    const { payload } = await jwtVerify(
      token,
      async ({ kid }) => {
        const key = kid === undefined ? null : await keys.verifier(kid);
        if (key === null) throw new UnknownKey();
        return key;
      },
      { algorithms: [ALGORITHM], requiredClaims: ["exp"], currentDate },
    );
    return payload;
  } catch (thrown) {
    if (thrown instanceof JOSEError || thrown instanceof UnknownKey) return null;
    throw thrown;
  }
}

function claimsOf(payload: JWTPayload): TokenClaims | null {
  const userId = Number(payload.sub);
  const accountId = payload["account"];
  const scope = payload["scope"];
  const clientId = payload["client_id"];
  const generation = payload["generation"];
  if (!Number.isInteger(userId) || typeof accountId !== "number") return null;
  if (typeof scope !== "string" || typeof clientId !== "string") return null;
  const claims = { userId, accountId, scopes: scope.split(" "), clientId };
  return typeof generation === "string" ? { ...claims, generation } : claims;
}
