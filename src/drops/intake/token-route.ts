/** The token endpoint of the intake: the password grant, answered as the service does (specification, *Authentication* 1 to 3 and 8). */
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  SCOPES,
  type TokenError,
  type TokenRequest,
  type TokenResponse,
  tokenRequest,
} from "../../wire/index.ts";
import { type People, TooManyAttempts } from "./senders.ts";

/** Asked for by standard clients of OpenID Connect; they grant nothing here and are left out of the answer's `scope`. */
const TOLERATED = ["openid", "profile", "email", "offline_access"];
const FORM_BYTES_MAX = 65_536;

class OAuthError extends Error {
  readonly status: 400 | 401 | 429;
  readonly error: string;

  constructor(status: 400 | 401 | 429, error: string, description: string) {
    super(description);
    this.status = status;
    this.error = error;
  }
}

export interface TokenParts {
  readonly people: People;
  /** The account that a service of the configuration delivers into; undefined when it is the default of its user. */
  accountOf(service: string | undefined): string | undefined;
}

export async function tokenRoutes(app: FastifyInstance, parts: TokenParts): Promise<void> {
  app.removeAllContentTypeParsers();
  await app.register(formbody, { bodyLimit: FORM_BYTES_MAX });
  app.setErrorHandler((thrown: Error & { statusCode?: number }, _request, reply) => {
    if (thrown instanceof OAuthError) return refuse(reply, thrown);
    if (thrown instanceof TooManyAttempts) {
      void reply.header("retry-after", thrown.retryAfterSec);
      return refuse(reply, new OAuthError(429, "slow_down", thrown.message));
    }
    if ((thrown.statusCode ?? 500) < 500)
      return refuse(reply, new OAuthError(400, "invalid_request", thrown.message));
    throw thrown;
  });
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<TokenResponse> => {
    void reply.header("cache-control", "no-store");
    return await answerTo(parts, readForm(request.body), request.ip);
  };
  app.post("/connect/token", handler);
  app.post("/realms/:realm/protocol/openid-connect/token", handler);
}

async function answerTo(
  { people, accountOf }: TokenParts,
  form: TokenRequest,
  address: string,
): Promise<TokenResponse> {
  if (!people.isClient(form.client_id, form.client_secret, address))
    throw new OAuthError(401, "invalid_client", "wrong client_id or client_secret");
  if (form.grant_type !== "password")
    throw new OAuthError(400, "unsupported_grant_type", "grant_type is always password");
  const scopes = [...new Set((form.scope ?? "").split(" "))].filter(
    (name) => name !== "" && !TOLERATED.includes(name),
  );
  const known: readonly string[] = SCOPES;
  const refused = scopes.filter((name) => !known.includes(name));
  if (scopes.length === 0 || refused.length > 0)
    throw new OAuthError(400, "invalid_scope", `scope is one or more of ${SCOPES.join(" ")}`);
  if (form.username === undefined || form.password === undefined)
    throw new OAuthError(400, "invalid_request", "the password grant needs username and password");
  const user = people.signIn(form.username, form.password, address);
  if (user === null) throw new OAuthError(401, "invalid_grant", "wrong username or password");
  checkAccount(form, accountOf(user.service));
  const grant = { username: user.username, scopes, clientId: form.client_id };
  const { token, lifetimeSec } = await people.issue(grant);
  return { access_token: token, expires_in: lifetimeSec, token_type: "Bearer", scope: scopes.join(" ") };
}

/** The data goes into the account of the service, so a token for another one would mislead its owner. */
function checkAccount(form: TokenRequest, account: string | undefined): void {
  const older = /(?:^|\s)accountId:(\S+)/i.exec(form.acr_values ?? "")?.[1];
  const asked = form.account ?? older ?? "";
  if (asked === "" || account === undefined || asked === account) return;
  throw new OAuthError(400, "invalid_grant", `the user may not enter the account ${asked}`);
}

function readForm(body: unknown): TokenRequest {
  const result = tokenRequest.safeParse(body ?? {});
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => issue.path.join(".")).join(", ");
  throw new OAuthError(
    400,
    "invalid_request",
    `send application/x-www-form-urlencoded with each field once; missing or not valid: ${fields}`,
  );
}

function refuse(reply: FastifyReply, thrown: OAuthError): FastifyReply {
  if (thrown.status === 401) void reply.header("www-authenticate", "Basic");
  const body: TokenError = { error: thrown.error, error_description: thrown.message };
  return reply.code(thrown.status).send(body);
}
