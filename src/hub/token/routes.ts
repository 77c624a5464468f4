/**
 * POST {token_url}: users and clients of the store (specification, *Authentication* 1 to 3 and 8; platform facts,
 * *Tokens*).
 */
import { hash, randomBytes, randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Attempt } from "#core/sign-in/throttle.ts";
import { SCOPES, tokenRequest, tokenResponse } from "#wire/index.ts";
import {
  accountRefused,
  type Grant,
  type Issued,
  OAuthError,
  type Refresh,
  serveTokens,
  type TokenIssuer,
  tooMany,
} from "#wire/token-endpoint.ts";
import type { HubContext } from "../context.ts";
import { described, type RouteFacts } from "../http/route.ts";
import type { ClientRecord } from "../store/identity.ts";
import type { UserRecord } from "../store/people/records.ts";
import type { RefreshToken } from "../store/people/refresh-tokens.ts";
import { passwordFault, signInByPassword } from "./guard.ts";
import { ALGORITHM } from "./keys.ts";
import { defaultAccount, mayAccess } from "./rights.ts";
import { generationOf, type TokenClaims } from "./tokens.ts";

const DISCOVERY: RouteFacts = {
  access: "open",
  tag: "Token",
  summary: "Addresses and abilities of the token interface (OpenID Connect Discovery)",
  answer: z.looseObject({ issuer: z.string(), token_endpoint: z.string(), jwks_uri: z.string() }),
};
const JWKS: RouteFacts = {
  access: "open",
  tag: "Token",
  summary: "Public keys of the access tokens (JSON Web Key Set)",
  answer: z.object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })) }),
};

const BYTES = 32;

const TOKEN: RouteFacts = {
  access: "open",
  tag: "Token",
  summary: "An access token for a user's name and password",
  body: tokenRequest,
  bodyType: "application/x-www-form-urlencoded",
  answer: tokenResponse,
};

export function tokenRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store, passwords, log } = context;
  const issuer: TokenIssuer<ClientRecord, UserRecord> = {
    client: async (id, secret, address) => {
      const client = await store.identity.client(id);
      const attempt = { address, name: `client ${id}` };
      return (await isSecretRight(context, attempt, secret, client?.secretHash)) ? client : null;
    },
    scopesOf: (client) => client.scopes ?? SCOPES,
    user: async (name, password, address) => {
      const verdict = await signInByPassword({ people: store.people, passwords }, { name, password, address });
      if (verdict.kind === "later") throw tooMany(verdict.why, verdict.seconds);
      if (verdict.kind === "refused") throw new OAuthError(400, "invalid_grant", verdict.why);
      return verdict.kind === "user" ? verdict.user : null;
    },
    issue: async (grant, request) => {
      const { client, user, scopes } = grant;
      const accountId = await chosenAccount(context, grant);
      const claims = claimsOf(client, user, accountId, scopes);
      const issued = await accessToken(context, claims, user, request);
      return grant.isOffline ? { ...issued, refresh: await newRefreshToken(context, claims) } : issued;
    },
    refresh: (refresh, request) => refreshed(context, refresh, request),
  };
  return serveTokens(app, issuer, { log, route: described(TOKEN) });
}

function claimsOf(client: ClientRecord, user: UserRecord, accountId: number, scopes: readonly string[]) {
  return { userId: user.id, accountId, scopes, clientId: client.id, generation: generationOf(user, client) };
}

async function accessToken(
  context: HubContext,
  claims: TokenClaims,
  { username }: UserRecord,
  request: FastifyRequest,
): Promise<Issued> {
  const { rates, tokens, options } = context;
  const wait = rates.issuing(JSON.stringify([claims.clientId, username]));
  if (wait > 0) throw tooMany("keep a token until it expires instead of asking for one at every call", wait);
  const token = await tokens.issue(claims, { username, issuer: issuerOf(context, request) });
  return { token, lifetimeSec: Math.round(options.tokenLifetime / 1_000) };
}

/** The account is that of the sign-in. */
async function refreshed(
  context: HubContext,
  { client, value, narrowed, account }: Refresh<ClientRecord>,
  request: FastifyRequest,
): Promise<Issued & { readonly scopes: readonly string[] }> {
  const current = await knownRefreshToken(context, value, client.id);
  const { accountId, userId } = current;
  const user = await context.store.people.entrant(userId);
  if (user === null || passwordFault(user) !== null || generationOf(user, client) !== current.generation)
    throw await endedRefreshToken(context, current);
  if (!mayAccess(user, accountId) || (account !== null && account !== String(accountId)))
    throw accountRefused(account ?? String(accountId));
  const allowed = client.scopes ?? SCOPES;
  const scopes = narrowed(current.scopes.filter((scope) => allowed.includes(scope)));
  if (scopes.length === 0) throw await endedRefreshToken(context, current);
  const issued = await accessToken(context, claimsOf(client, user, accountId, scopes), user, request);
  return { ...issued, refresh: await rotatedRefreshToken(context, current), scopes };
}

async function isSecretRight(
  { passwords }: HubContext,
  attempt: Attempt,
  secret: string,
  encoded: string | undefined,
): Promise<boolean> {
  const verdict = await passwords.check(attempt, secret, encoded ?? null);
  if (verdict.kind === "later") throw tooMany(verdict.why, verdict.seconds);
  return verdict.kind === "right";
}

async function chosenAccount(
  { store }: HubContext,
  { account, user }: Grant<ClientRecord, UserRecord>,
): Promise<number> {
  if (account === null) {
    const accountId = defaultAccount(user);
    if (accountId === undefined) throw new OAuthError(400, "invalid_grant", "the user has no account");
    return accountId;
  }
  const accountId = /^\d{1,15}$/.test(account) ? Number(account) : Number.NaN;
  if (!mayAccess(user, accountId) || (await store.identity.account(accountId)) === null) throw accountRefused(account);
  if (user.lastAccountId !== accountId) await store.people.touchAccount(user.id, accountId);
  return accountId;
}

// Refresh tokens of the token interface (`docs/hub/people.md`, *Tokens and rights*).

interface GivenToken {
  readonly value: string;
  readonly lifetimeSec: number;
}

type Facts = Omit<RefreshToken, "hash" | "family" | "expiresMs">;

/** The first of a family. */
async function newRefreshToken(context: HubContext, facts: Facts): Promise<GivenToken> {
  const { given, token } = made(context, { ...facts, family: randomUUID() });
  await context.store.refreshTokens.add(token);
  return given;
}

/** Throws an `invalid_grant`, also where the token was given to another client. */
async function knownRefreshToken({ store, clock }: HubContext, value: string, clientId: string): Promise<RefreshToken> {
  const token = await store.refreshTokens.find(hashOf(value));
  if (token === null || token.clientId !== clientId || token.expiresMs <= clock.now().epochMilliseconds)
    throw refused("it is unknown, has expired, or is of another client");
  return token;
}

/** The token that follows. A second use ends the family: one of both callers has stolen it. */
async function rotatedRefreshToken(context: HubContext, current: RefreshToken): Promise<GivenToken> {
  const { store, clock, options, log } = context;
  const { given, token: next } = made(context, current);
  const nowMs = clock.now().epochMilliseconds;
  const rotation = { next, nowMs, graceMs: options.refreshTokens.grace };
  if ((await store.refreshTokens.rotate(current, rotation)) === "rotated") return given;
  const { userId, clientId, accountId } = current;
  log.warn({ userId, clientId, account: accountId }, "a refresh token was used twice; all that follow from it ended");
  throw refused("it was used before, so that all that follow from it have ended");
}

async function endedRefreshToken({ store }: HubContext, { family }: RefreshToken): Promise<OAuthError> {
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

// Discovery for standard clients of OpenID Connect: the document of the issuer, and its public keys.

interface WithRealm {
  Params: { realm?: string };
}

/** The issuer of a token is the address of its discovery document, with the requested realm. */
function issuerOf({ options }: HubContext, request: FastifyRequest): string {
  const base = options.publicUrl?.replace(/\/$/, "") ?? `${request.protocol}://${request.host}`;
  const realm = (request.params as { realm?: string } | undefined)?.realm;
  return realm === undefined ? base : `${base}/realms/${encodeURIComponent(realm)}`;
}

export async function discoveryRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const document = (request: FastifyRequest) => {
    const issuer = issuerOf(context, request);
    const inRealm = issuer.includes("/realms/");
    return {
      issuer,
      token_endpoint: inRealm ? `${issuer}/protocol/openid-connect/token` : `${issuer}/connect/token`,
      jwks_uri: inRealm ? `${issuer}/protocol/openid-connect/certs` : `${issuer}/.well-known/jwks.json`,
      grant_types_supported: ["password", "refresh_token"],
      response_types_supported: [],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [ALGORITHM],
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"],
      scopes_supported: [...SCOPES, "offline_access"],
      claims_supported: ["sub", "account", "scope", "name", "client_id"],
    };
  };
  const keys = async () => ({ keys: await context.keys.published() });
  app.get("/.well-known/openid-configuration", described(DISCOVERY), async (request) => document(request));
  app.get("/.well-known/jwks.json", described(JWKS), keys);
  app.get<WithRealm>("/realms/:realm/.well-known/openid-configuration", described(DISCOVERY), async (request) =>
    document(request),
  );
  app.get("/realms/:realm/protocol/openid-connect/certs", described(JWKS), keys);
}
