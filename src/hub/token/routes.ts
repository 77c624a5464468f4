/** POST {token_url}: the password grant (specification, *Authentication* 1 to 3 and 8; platform facts, *Tokens*). */
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Attempt } from "../../support/sign-in-throttle.ts";
import {
  SCOPES,
  type TokenError,
  type TokenRequest,
  type TokenResponse,
  tokenRequest,
  tokenResponse,
} from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { HttpProblem, unfit } from "../http/problems.ts";
import { described, type RouteFacts } from "../http/route.ts";
import type { ClientRecord, UserRecord } from "../store/store.ts";
import { issuerOf } from "./discovery.ts";
import { defaultAccount, mayEnter } from "./rights.ts";
import { generationOf } from "./tokens.ts";

/** Asked for by standard clients of OpenID Connect; they grant nothing here and are left out of the answer's `scope`. */
const TOLERATED = ["openid", "profile", "email", "offline_access"];

class OAuthError extends Error {
  readonly status: number;
  readonly error: string;
  readonly retryAfterSec: number | undefined;

  constructor(status: 400 | 401 | 429, error: string, description: string, retryAfterSec?: number) {
    super(description);
    this.status = status;
    this.error = error;
    this.retryAfterSec = retryAfterSec;
  }
}

export async function tokenRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  await app.register(formbody, { bodyLimit: 65_536 });
  app.removeContentTypeParser(["application/json", "text/plain"]);
  app.setErrorHandler((thrown: Error & { statusCode?: number }, request, reply) => {
    if (thrown instanceof OAuthError) return sendError(reply, thrown);
    const status = thrown instanceof HttpProblem ? thrown.status : (thrown.statusCode ?? 500);
    if (status < 500) return sendError(reply, new OAuthError(400, "invalid_request", thrown.message));
    context.log.error({ err: thrown, url: request.url }, "token request failed");
    return reply.code(500).send({ error: "server_error" } satisfies TokenError);
  });
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<TokenResponse> => {
    void reply.header("cache-control", "no-store");
    return grant(context, request, readRequest(request));
  };
  app.post("/connect/token", described(TOKEN), handler);
  app.post("/realms/:realm/protocol/openid-connect/token", described(TOKEN), handler);
}

const TOKEN: RouteFacts = {
  access: "open",
  tag: "Token",
  summary: "An access token for a user's name and password",
  body: tokenRequest,
  bodyType: "application/x-www-form-urlencoded",
  answer: tokenResponse,
};

async function grant(
  context: HubContext,
  request: FastifyRequest,
  form: TokenRequest,
): Promise<TokenResponse> {
  const client = await checkClient(context, request, form);
  if (form.grant_type !== "password")
    throw new OAuthError(400, "unsupported_grant_type", "grant_type is always password");
  const scopes = grantedScopes(form.scope, client);
  const user = await checkUser(context, request, form);
  const accountId = await chosenAccount(context, form, user);
  const wait = context.rates.issuing(JSON.stringify([client.id, user.username]));
  if (wait > 0) throw tooMany("keep a token until it expires instead of asking for one at every call", wait);
  const token = await context.tokens.issue(
    { userId: user.id, accountId, scopes, clientId: client.id, generation: generationOf(user, client) },
    { username: user.username, issuer: issuerOf(context, request) },
  );
  return {
    access_token: token,
    expires_in: Math.round(context.options.tokenLifetime / 1_000),
    token_type: "Bearer",
    scope: scopes.join(" "),
  };
}

/** Client credentials stand in the form, or in a Basic header (RFC 6749, 2.3.1). */
function readRequest({ body, headers }: FastifyRequest): TokenRequest {
  const basic = /^basic\s+(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  const decoded = basic === undefined ? "" : Buffer.from(basic, "base64").toString("utf8");
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(decoded) ?? [];
  const credentials =
    id === undefined || secret === undefined
      ? {}
      : { client_id: unescaped(id), client_secret: unescaped(secret) };
  const why = unfit(body) ?? unfit(credentials);
  if (why !== null) throw new OAuthError(400, "invalid_request", why);
  const result = tokenRequest.safeParse({ ...credentials, ...(body as object | undefined) });
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => issue.path.join(".")).join(", ");
  throw new OAuthError(
    400,
    "invalid_request",
    `send application/x-www-form-urlencoded with each field once; missing or not valid: ${fields}`,
  );
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}

async function checkClient(
  context: HubContext,
  { ip }: FastifyRequest,
  form: TokenRequest,
): Promise<ClientRecord> {
  const client = await context.store.identity.client(form.client_id);
  const attempt = { address: ip, name: `client ${form.client_id}` };
  const isRight = await isSecretRight(context, attempt, form.client_secret, client?.secretHash);
  if (!isRight || client === null)
    throw new OAuthError(401, "invalid_client", "wrong client_id or client_secret");
  return client;
}

async function checkUser(
  context: HubContext,
  { ip }: FastifyRequest,
  form: TokenRequest,
): Promise<UserRecord> {
  if (form.username === undefined || form.password === undefined)
    throw new OAuthError(400, "invalid_request", "the password grant needs username and password");
  const user = await context.store.identity.userByName(form.username);
  const attempt = { address: ip, name: `user ${form.username}` };
  const isRight = await isSecretRight(context, attempt, form.password, user?.passwordHash);
  if (!isRight || user === null) throw new OAuthError(401, "invalid_grant", "wrong username or password");
  return user;
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

/** RFC 6749 has no word for it; `slow_down` is that of RFC 8628. */
function tooMany(description: string, retryAfterSec: number): OAuthError {
  return new OAuthError(429, "slow_down", `${description}; try again in ${retryAfterSec} s`, retryAfterSec);
}

function grantedScopes(asked: string | undefined, client: ClientRecord): string[] {
  const names = [...new Set((asked ?? "").split(" ").filter((name) => name !== ""))];
  const granted = names.filter((name) => !TOLERATED.includes(name));
  if (granted.length === 0)
    throw new OAuthError(400, "invalid_scope", `scope is required: one or more of ${SCOPES.join(" ")}`);
  const allowed: readonly string[] = client.scopes ?? SCOPES;
  const refused = granted.filter((name) => !allowed.includes(name));
  if (refused.length > 0)
    throw new OAuthError(400, "invalid_scope", `not granted to this client: ${refused.join(" ")}`);
  return granted;
}

async function chosenAccount({ store }: HubContext, form: TokenRequest, user: UserRecord): Promise<number> {
  const older = /(?:^|\s)accountId:(\S+)/i.exec(form.acr_values ?? "")?.[1];
  const asked = form.account ?? older;
  if (asked === undefined || asked === "") {
    const accountId = defaultAccount(user);
    if (accountId === undefined) throw new OAuthError(400, "invalid_grant", "the user has no account");
    return accountId;
  }
  const accountId = /^\d{1,15}$/.test(asked) ? Number(asked) : Number.NaN;
  if (!mayEnter(user, accountId) || (await store.identity.account(accountId)) === null)
    throw new OAuthError(400, "invalid_grant", `the user may not enter the account ${asked}`);
  if (user.lastAccountId !== accountId) await store.identity.touchAccount(user.id, accountId);
  return accountId;
}

function sendError(reply: FastifyReply, thrown: OAuthError): FastifyReply {
  if (thrown.status === 401) void reply.header("www-authenticate", "Basic");
  if (thrown.retryAfterSec !== undefined) void reply.header("retry-after", thrown.retryAfterSec);
  const body: TokenError = { error: thrown.error, error_description: thrown.message };
  return reply.code(thrown.status).send(body);
}
