/**
 * POST {token_url}, as hubs and HTTP intakes serve it: the password grant (specification, *Authentication* 1
 * to 3 and 8).
 */
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from "fastify";
import type { Logger } from "#core/log.ts";
import { frameworkWords } from "./framework-words.ts";
import { formDecoded } from "./push-request.ts";
import { newerScope, SCOPES, type TokenError, type TokenRequest, type TokenResponse, tokenRequest } from "./token.ts";

/**
 * Requested by standard clients of OpenID Connect; they grant nothing here and are omitted from the answer's
 * `scope`.
 */
const TOLERATED = ["openid", "profile", "email"];
/** Asks for a refresh token; no scope of any interface. */
const OFFLINE = "offline_access";
const FORM_BYTES_MAX = 65_536;

/** A refusal (RFC 6749, 5.2). */
export class OAuthError extends Error {
  readonly status: 400 | 401 | 429;
  readonly error: string;
  readonly retryAfterSec: number | undefined;

  constructor(status: 400 | 401 | 429, error: string, description: string, retryAfterSec?: number) {
    super(description);
    this.status = status;
    this.error = error;
    this.retryAfterSec = retryAfterSec;
  }
}

/** RFC 6749 has no word for it; `slow_down` is that of RFC 8628. */
export function tooMany(description: string, retryAfterSec: number): OAuthError {
  return new OAuthError(429, "slow_down", `${description}; try again in ${retryAfterSec} s`, retryAfterSec);
}

export function accountRefused(account: string): OAuthError {
  return new OAuthError(400, "invalid_grant", `the user may not enter the account ${account}`);
}

/** All of it was checked but whether the user may enter the account. */
export interface Grant<Client, User> {
  readonly client: Client;
  readonly user: User;
  readonly scopes: readonly string[];
  /** Null when none was asked for. */
  readonly account: string | null;
  /** Whether a refresh token was asked for. */
  readonly isOffline: boolean;
}

export interface Issued {
  readonly token: string;
  readonly lifetimeSec: number;
  readonly refresh?: { readonly value: string; readonly lifetimeSec: number };
}

/** A request by a refresh token. */
export interface Refresh<Client> {
  readonly client: Client;
  readonly value: string;
  /** The scopes to grant of those that the refresh token has; throws where one is not among them. */
  narrowed(scopes: readonly string[]): readonly string[];
  /** Null when none was asked for. */
  readonly account: string | null;
}

/**
 * The clients and users that may sign in, and their tokens. Each method may throw an `OAuthError`; null is a
 * wrong secret or an unknown name.
 */
export interface TokenIssuer<Client, User> {
  client(id: string, secret: string, address: string): Promise<Client | null>;
  /** The scopes that a client may be granted. */
  scopesOf(client: Client): readonly string[];
  user(name: string, password: string, address: string): Promise<User | null>;
  issue(grant: Grant<Client, User>, request: FastifyRequest): Promise<Issued>;
  /** Absent: there are no refresh tokens. */
  refresh?(refresh: Refresh<Client>, request: FastifyRequest): Promise<Issued & { readonly scopes: readonly string[] }>;
}

/** The routes, on a scope of their own. */
export async function serveTokens<Client, User>(
  app: FastifyInstance,
  issuer: TokenIssuer<Client, User>,
  { log, route = {} }: { readonly log: Logger; readonly route?: RouteShorthandOptions },
): Promise<void> {
  app.removeAllContentTypeParsers();
  await app.register(formbody, { bodyLimit: FORM_BYTES_MAX });
  app.setErrorHandler((thrown: Error & { status?: number; statusCode?: number }, request, reply) => {
    if (thrown instanceof OAuthError) return sendError(reply, thrown);
    const status = thrown.status ?? thrown.statusCode ?? 500;
    if (status < 500) return sendError(reply, new OAuthError(400, "invalid_request", frameworkWords(thrown, request)));
    log.error({ err: thrown, url: request.url }, "token request failed");
    return reply.code(500).send({ error: "server_error" } satisfies TokenError);
  });
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<TokenResponse> => {
    void reply.header("cache-control", "no-store");
    return await answer(issuer, readRequest(request), request);
  };
  app.post("/connect/token", route, handler);
  app.post("/realms/:realm/protocol/openid-connect/token", route, handler);
}

async function answer<Client, User>(
  issuer: TokenIssuer<Client, User>,
  form: TokenRequest,
  request: FastifyRequest,
): Promise<TokenResponse> {
  const client = await issuer.client(form.client_id, form.client_secret, request.ip);
  if (client === null) throw new OAuthError(401, "invalid_client", "wrong client_id or client_secret");
  if (form.grant_type === "refresh_token" && issuer.refresh !== undefined) {
    const { refresh_token: value, scope } = form;
    if (value === undefined) throw new OAuthError(400, "invalid_request", "the refresh_token is missing");
    const narrowed = (scopes: readonly string[]) => narrowedScopes(scope, scopes);
    const { scopes, ...issued } = await issuer.refresh(
      { client, value, narrowed, account: askedAccount(form) },
      request,
    );
    return responseOf(issued, scopes);
  }
  if (form.grant_type !== "password") {
    const known = issuer.refresh === undefined ? "always password" : "password or refresh_token";
    throw new OAuthError(400, "unsupported_grant_type", `grant_type is ${known}`);
  }
  const scopes = grantedScopes(form.scope, issuer.scopesOf(client));
  if (form.username === undefined || form.password === undefined)
    throw new OAuthError(400, "invalid_request", "the password grant needs username and password");
  const user = await issuer.user(form.username, form.password, request.ip);
  if (user === null) throw new OAuthError(401, "invalid_grant", "wrong username or password");
  const isOffline = namesOf(form.scope).includes(OFFLINE);
  const grant = { client, user, scopes, account: askedAccount(form), isOffline };
  return responseOf(await issuer.issue(grant, request), scopes);
}

function responseOf({ token, lifetimeSec, refresh }: Issued, scopes: readonly string[]): TokenResponse {
  const granted = refresh === undefined ? scopes : [...scopes, OFFLINE];
  return {
    access_token: token,
    expires_in: lifetimeSec,
    token_type: "Bearer",
    scope: granted.join(" "),
    ...(refresh === undefined ? {} : { refresh_token: refresh.value, refresh_expires_in: refresh.lifetimeSec }),
  };
}

/** Client credentials are in the form, or in a Basic header (RFC 6749, 2.3.1). */
function readRequest({ body, headers }: FastifyRequest): TokenRequest {
  const basic = /^basic\s+(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  const decoded = basic === undefined ? "" : Buffer.from(basic, "base64").toString("utf8");
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(decoded) ?? [];
  const credentials =
    id === undefined || secret === undefined ? {} : { client_id: formDecoded(id), client_secret: formDecoded(secret) };
  const result = tokenRequest.safeParse({ ...credentials, ...(body as object | undefined) });
  if (result.success) return withoutNul(result.data);
  const fields = result.error.issues.map((issue) => issue.path.join(".")).join(", ");
  throw new OAuthError(
    400,
    "invalid_request",
    `send application/x-www-form-urlencoded with each field once; missing or not valid: ${fields}`,
  );
}

function withoutNul(form: TokenRequest): TokenRequest {
  if (!Object.values(form).some((text) => text?.includes("\0"))) return form;
  throw new OAuthError(400, "invalid_request", "a field holds a NUL character, which no name or secret has");
}

function namesOf(asked: string | undefined): readonly string[] {
  const given = (asked ?? "").split(" ").filter((name) => name !== "");
  return [...new Set(given.map(newerScope))];
}

/** Without scopes that grant nothing on any interface. */
function realScopes(asked: string | undefined): readonly string[] {
  return namesOf(asked).filter((name) => !TOLERATED.includes(name) && name !== OFFLINE);
}

function narrowedScopes(asked: string | undefined, scopes: readonly string[]): readonly string[] {
  const wanted = realScopes(asked);
  const more = wanted.filter((name) => !scopes.includes(name));
  if (more.length === 0) return wanted.length === 0 ? scopes : wanted;
  throw new OAuthError(400, "invalid_scope", `the refresh token does not have: ${more.join(" ")}`);
}

function grantedScopes(asked: string | undefined, allowed: readonly string[]): readonly string[] {
  const granted = realScopes(asked);
  if (granted.length === 0)
    throw new OAuthError(400, "invalid_scope", `scope is required: one or more of ${SCOPES.join(" ")}`);
  const refused = granted.filter((name) => !allowed.includes(name));
  if (refused.length > 0)
    throw new OAuthError(400, "invalid_scope", `not granted to this client: ${refused.join(" ")}`);
  return granted;
}

/** `acr_values=accountId:<id>` is the older form of `account`. */
function askedAccount({ account, acr_values }: TokenRequest): string | null {
  const asked = account ?? /(?:^|\s)accountId:(\S+)/i.exec(acr_values ?? "")?.[1] ?? "";
  return asked === "" ? null : asked;
}

function sendError(reply: FastifyReply, thrown: OAuthError): FastifyReply {
  if (thrown.status === 401) void reply.header("www-authenticate", "Basic");
  if (thrown.retryAfterSec !== undefined) void reply.header("retry-after", thrown.retryAfterSec);
  const body: TokenError = { error: thrown.error, error_description: thrown.message };
  return reply.code(thrown.status).send(body);
}
