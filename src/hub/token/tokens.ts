/** Access tokens: JWT (ES256), signed with a key that is kept in the store, so that tokens outlive a restart. */
import { randomUUID } from "node:crypto";
import {
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from "jose";
import { JOSEError } from "jose/errors";
import type { Clock } from "../../support/clock.ts";
import type { IdentityStore } from "../store/store.ts";

const ALGORITHM = "ES256";
const VERIFIED_MAX = 2_000;

export interface TokenClaims {
  readonly userId: number;
  readonly accountId: number;
  readonly scopes: readonly string[];
  readonly clientId: string;
}

export interface Tokens {
  issue(claims: TokenClaims, facts: { readonly username: string }): Promise<string>;
  /** Null when it is not ours, altered or expired. */
  verify(token: string): Promise<TokenClaims | null>;
}

export async function createTokens(
  identity: IdentityStore,
  { issuer, lifetimeMs, clock }: { issuer: string; lifetimeMs: number; clock: Clock },
): Promise<Tokens> {
  const keys = await loadKeys(identity, clock);
  const current = await importJWK(keys.current, ALGORITHM);
  const publicKeys = createLocalJWKSet({ keys: keys.all.map(publicPart) });
  const verified = new Map<string, { claims: TokenClaims; expiresMs: number }>();

  return {
    async issue({ userId, accountId, scopes, clientId }, { username }) {
      const nowSec = Math.floor(clock.now().epochMilliseconds / 1_000);
      return new SignJWT({ account: accountId, scope: scopes.join(" "), name: username, client_id: clientId })
        .setProtectedHeader({ alg: ALGORITHM, typ: "at+jwt", kid: String(keys.current.kid) })
        .setSubject(String(userId))
        .setIssuer(issuer)
        .setJti(randomUUID())
        .setIssuedAt(nowSec)
        .setExpirationTime(nowSec + Math.round(lifetimeMs / 1_000))
        .sign(current);
    },
    async verify(token) {
      const nowMs = clock.now().epochMilliseconds;
      const known = verified.get(token);
      if (known !== undefined) return known.expiresMs > nowMs ? known.claims : null;
      const payload = await checked(token, publicKeys, new Date(nowMs));
      const claims = payload === null ? null : claimsOf(payload);
      if (claims === null || payload?.exp === undefined) return null;
      const oldest = verified.size >= VERIFIED_MAX ? verified.keys().next().value : undefined;
      if (oldest !== undefined) verified.delete(oldest);
      verified.set(token, { claims, expiresMs: payload.exp * 1_000 });
      return claims;
    },
  };
}

async function checked(
  token: string,
  keys: ReturnType<typeof createLocalJWKSet>,
  currentDate: Date,
): Promise<JWTPayload | null> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: [ALGORITHM],
      requiredClaims: ["exp"],
      currentDate,
    });
    return payload;
  } catch (thrown) {
    if (thrown instanceof JOSEError) return null;
    throw thrown;
  }
}

function claimsOf(payload: JWTPayload): TokenClaims | null {
  const userId = Number(payload.sub);
  const accountId = payload["account"];
  const scope = payload["scope"];
  const clientId = payload["client_id"];
  if (!Number.isInteger(userId) || typeof accountId !== "number") return null;
  if (typeof scope !== "string" || typeof clientId !== "string") return null;
  return { userId, accountId, scopes: scope.split(" "), clientId };
}

async function loadKeys(identity: IdentityStore, clock: Clock): Promise<{ current: JWK; all: JWK[] }> {
  const all = (await identity.signingKeys()).map((key): JWK => JSON.parse(key.privateJwk));
  if (all[0] !== undefined) return { current: all[0], all };
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const made = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: ALGORITHM };
  const createdMs = clock.now().epochMilliseconds;
  await identity.addSigningKey({ kid: made.kid, privateJwk: JSON.stringify(made) }, createdMs);
  return { current: made, all: [made] };
}

function publicPart({ d: _, ...rest }: JWK): JWK {
  return rest;
}
