/**
 * The gateway in the same process as a caller of the hub: it has no record, no password and no client, and its tokens
 * name the one account whose files it works on. A token from the token interface names a user of the store, whose ids
 * begin at 1.
 */
import type { Clock } from "#core/clock.ts";
import { SCOPES } from "#wire/index.ts";
import type { UserRecord } from "../store/people/records.ts";
import type { KeyRing } from "./keys.ts";
import { createTokens, type TokenClaims } from "./tokens.ts";

const USER_ID = 0;
const CLIENT_ID = "(gateway of the hub)";
const USERNAME = "gateway of the hub";
const LIFETIME_MAX_MS = 600_000;

interface InnerToken {
  readonly value: string;
  readonly lifetimeMs: number;
}

export type MintInnerToken = (accountId: number) => Promise<InnerToken>;

export function createInnerTokens(keys: KeyRing, tokenLifetimeMs: number, clock: Clock): MintInnerToken {
  // A key verifies as long as tokens of the usual lifetime are valid.
  const lifetimeMs = Math.min(LIFETIME_MAX_MS, tokenLifetimeMs);
  const tokens = createTokens(keys, { lifetimeMs, clock });
  return async (accountId) => {
    const claims = { userId: USER_ID, accountId, scopes: SCOPES, clientId: CLIENT_ID };
    return { value: await tokens.issue(claims, { username: USERNAME, issuer: CLIENT_ID }), lifetimeMs };
  };
}

const INNER: Omit<UserRecord, "memberships"> = {
  id: USER_ID,
  username: USERNAME,
  email: null,
  firstName: null,
  lastName: null,
  state: "Active",
  passwordHash: null,
  mustChangePassword: false,
  temporaryUntilMs: null,
  tokenGeneration: 0,
  provenMs: null,
  totp: null,
  origin: "configuration",
  lastAccountId: null,
};

/** The user that such a token stands for; null for a token of a user. */
export function innerUser({ userId, clientId, accountId }: TokenClaims): UserRecord | null {
  if (userId !== USER_ID || clientId !== CLIENT_ID) return null;
  return { ...INNER, memberships: [{ accountId, roles: ["Datapusher"], businessId: null }] };
}

/** Its requests are work for files that the account sent, and count for no limit of requests. */
export function isInner(caller: { readonly user: Pick<UserRecord, "id"> }): boolean {
  return isInnerUser(caller.user.id);
}

export function isInnerUser(userId: number): boolean {
  return userId === USER_ID;
}
