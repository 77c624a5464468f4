/**
 * Keys that sign access tokens (ES256), kept in the store, so that tokens survive a restart and every node accepts
 * them. A key signs until it is renewed, and verifies until the last token that it signed has expired.
 */
import { randomUUID } from "node:crypto";
import { exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import type { Clock } from "#core/clock.ts";
import type { HubOptions } from "../options.ts";
import type { IdentityStore } from "../store/identity.ts";

export const ALGORITHM = "ES256";
/** Other nodes may sign with an old key until they have reloaded the store. */
const RELOAD_MS = 60_000;
/** Tokens with made-up key ids must not read the store at every call. */
const RELOAD_AGAIN_MS = 1_000;

export interface KeyRing {
  signer(): Promise<{ readonly kid: string; readonly key: CryptoKey }>;
  /** A key whose tokens may still be valid; null when there is no such key. */
  verifier(kid: string): Promise<CryptoKey | null>;
  /** Public keys, the signing one first. */
  published(): Promise<readonly JWK[]>;
}

interface Key {
  readonly kid: string;
  readonly createdMs: number;
  /** When the next key was made; null: this key signs. */
  readonly renewedMs: number | null;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
}

export function createKeyRing(
  identity: IdentityStore,
  options: Pick<HubOptions, "signingKeys" | "tokenLifetime">,
  clock: Clock,
): KeyRing {
  const { renewAfter, renewedSince, revokedBefore } = options.signingKeys;
  let keys: readonly Key[] = [];
  let loadedMs = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | null = null;

  const load = async (): Promise<void> => {
    const nowMs = clock.now().epochMilliseconds;
    const revokedMs = instantMs(revokedBefore);
    const stored = (await identity.signingKeys()).filter(({ createdMs }) => createdMs >= revokedMs);
    const read: Key[] = [];
    for (const [index, { privateJwk, createdMs }] of stored.entries()) {
      const renewedMs = stored[index - 1]?.createdMs ?? null;
      read.push(await keyOf(JSON.parse(privateJwk) as JWK, createdMs, renewedMs));
    }
    const lapsed = read.filter(
      ({ renewedMs }) => renewedMs !== null && renewedMs + options.tokenLifetime + RELOAD_MS < nowMs,
    );
    if (lapsed.length > 0) await identity.removeSigningKeys(lapsed.map(({ kid }) => kid));
    keys = read.filter((key) => !lapsed.includes(key));
    loadedMs = nowMs;
  };
  const reload = async (olderThanMs: number): Promise<void> => {
    if (clock.now().epochMilliseconds - loadedMs < olderThanMs) return;
    loading ??= load().finally(() => {
      loading = null;
    });
    await loading;
  };
  const stale = (key: Key | undefined): boolean => {
    const nowMs = clock.now().epochMilliseconds;
    if (key === undefined || nowMs - key.createdMs >= renewAfter) return true;
    // A date in the future would make a key for every token.
    return key.createdMs < Math.min(instantMs(renewedSince), loadedMs);
  };
  let renewing: Promise<void> | null = null;
  const renew = async (): Promise<void> => {
    const createdMs = clock.now().epochMilliseconds;
    const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
    const made = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: ALGORITHM };
    await identity.addSigningKey({ kid: made.kid, privateJwk: JSON.stringify(made), createdMs });
    await load();
  };

  return {
    async signer() {
      await reload(RELOAD_MS);
      if (stale(keys[0])) {
        renewing ??= renew().finally(() => {
          renewing = null;
        });
        await renewing;
      }
      const [current] = keys;
      if (current === undefined) throw new Error("the key that was just made is not in the store");
      return { kid: current.kid, key: current.privateKey };
    },
    async verifier(kid) {
      const found = () => keys.find((key) => key.kid === kid)?.publicKey;
      if (found() === undefined) await reload(RELOAD_AGAIN_MS);
      return found() ?? null;
    },
    async published() {
      await reload(RELOAD_MS);
      return keys.map(({ publicJwk }) => publicJwk);
    },
  };
}

function instantMs(text: string | undefined): number {
  return text === undefined ? Number.NEGATIVE_INFINITY : Date.parse(text);
}

async function keyOf(jwk: JWK, createdMs: number, renewedMs: number | null): Promise<Key> {
  const { d: _, ...publicPart } = jwk;
  const publicJwk = { ...publicPart, alg: ALGORITHM, use: "sig" };
  const [privateKey, publicKey] = await Promise.all([importJWK(jwk, ALGORITHM), importJWK(publicJwk, ALGORITHM)]);
  if (privateKey instanceof Uint8Array || publicKey instanceof Uint8Array)
    throw new Error(`the signing key ${jwk.kid} is not a key pair`);
  return { kid: String(jwk.kid), createdMs, renewedMs, privateKey, publicKey, publicJwk };
}
