/**
 * Authenticates callers: Bearer tokens on both interfaces, Basic on push (specification, *Authentication* 4 to 7, and
 * *Errors*).
 */
import type { FastifyRequest } from "fastify";
import { HttpProblem, unauthenticated } from "../../wire/http-problem.ts";
import { authorizationOf, basicCredentials, checkApiVersion } from "../../wire/request-authorization.ts";
import type { AccessRule } from "../http/access.ts";
import { CSRF_HEADER } from "../sessions/browser.ts";
import type { BrowserSession, Sessions } from "../sessions/sessions.ts";
import type { PeopleStore } from "../store/people/people.ts";
import type { IdentityStore, UserRecord } from "../store/store.ts";
import { innerUser } from "./inner.ts";
import { signInByPassword } from "./password-sign-in.ts";
import type { Passwords } from "./passwords.ts";
import { defaultAccount, hasRight, mayAccess, RIGHT_WORDS } from "./rights.ts";
import { generationOf, type Tokens } from "./tokens.ts";

export interface Principal {
  readonly user: UserRecord;
  readonly accountId: number;
  /** Null: Basic credentials and browsers name none. */
  readonly clientId: string | null;
  /** The user who acts as the other one, in a browser; null: the user himself. */
  readonly impersonator?: UserRecord | null;
}

/** A session counts as its user. */
export function callerBy({ user, accountId, impersonator }: BrowserSession): Principal {
  return { user, accountId, clientId: null, impersonator };
}

export interface Guard {
  /** Bearer with one of the scopes, or Basic where the rule allows it: 401 otherwise; without the right 403. */
  admit(request: FastifyRequest, rule: AccessRule): Promise<Principal>;
}

export interface GuardParts {
  readonly identity: IdentityStore;
  readonly people: PeopleStore;
  readonly tokens: Tokens;
  readonly passwords: Passwords;
  readonly sessions: Sessions;
}

export function createGuard({ identity, people, tokens, passwords, sessions }: GuardParts): Guard {
  const bySession = async (request: FastifyRequest): Promise<Principal> => {
    const session = await sessions.ofScript(request);
    if (session !== null) return callerBy(session);
    throw unauthenticated("the session of this browser has ended, or X-CSRF-Token is not its own: sign in again");
  };
  const byToken = async (request: FastifyRequest, scopes: readonly string[]): Promise<Principal> => {
    const [scheme, token] = authorizationOf(request);
    if (scheme !== "bearer" || token === "") throw unauthenticated("send `Authorization: Bearer <access token>`");
    const claims = await tokens.verify(token);
    if (claims === null) throw unauthenticated("the access token is not valid or has expired");
    if (!scopes.some((scope) => claims.scopes.includes(scope)))
      throw new HttpProblem(401, "missing-scope", `the access token lacks the scope ${scopes.join(" or ")}`);
    const inner = innerUser(claims);
    if (inner !== null) return { user: inner, accountId: claims.accountId, clientId: claims.clientId };
    const [user, client] = await Promise.all([people.entrant(claims.userId), identity.client(claims.clientId)]);
    if (user === null || !mayAccess(user, claims.accountId))
      throw unauthenticated("the user of the access token may no longer enter its account");
    if (client === null || generationOf(user, client) !== claims.generation)
      throw unauthenticated("the client of the access token was removed, or its password or secret changed");
    return { user, accountId: claims.accountId, clientId: claims.clientId };
  };
  const byPassword = async (credentials: string, address: string): Promise<Principal> => {
    const { name, password } = basicCredentials(credentials);
    const verdict = await signInByPassword({ people, passwords }, { name, password, address });
    if (verdict.kind === "later")
      throw new HttpProblem(429, "too-many-requests", verdict.why, undefined, verdict.seconds);
    if (verdict.kind === "refused") throw unauthenticated(verdict.why);
    const accountId = verdict.kind === "wrong" ? undefined : defaultAccount(verdict.user);
    if (verdict.kind === "wrong" || accountId === undefined) throw unauthenticated("wrong user name or password");
    return { user: verdict.user, accountId, clientId: null };
  };
  return {
    async admit(request, { scopes, right, basic }) {
      checkApiVersion(request, "hub");
      const [scheme, credentials] = authorizationOf(request);
      const isScript = request.headers.authorization === undefined && request.headers[CSRF_HEADER] !== undefined;
      const byHeader = () =>
        basic && scheme === "basic" ? byPassword(credentials, request.ip) : byToken(request, scopes);
      const principal = await (isScript ? bySession(request) : byHeader());
      const { user, accountId } = principal;
      if (right !== null && !hasRight(user, accountId, right))
        throw new HttpProblem(403, "missing-right", `the user ${user.username} lacks the right: ${RIGHT_WORDS[right]}`);
      return principal;
    },
  };
}
