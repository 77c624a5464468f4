/**
 * POST {token_url}: users and clients of the store (specification, *Authentication* 1 to 3 and 8; platform facts,
 * *Tokens*).
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
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
import type { ClientRecord, UserRecord } from "../store/store.ts";
import { issuerOf } from "./discovery.ts";
import { passwordFault, signInByPassword } from "./password-sign-in.ts";
import { endedRefreshToken, knownRefreshToken, newRefreshToken, rotatedRefreshToken } from "./refresh-tokens.ts";
import { defaultAccount, mayAccess } from "./rights.ts";
import { generationOf, type TokenClaims } from "./tokens.ts";

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
