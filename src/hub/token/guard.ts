/**
 * Authenticates callers: Bearer tokens on both interfaces, Basic on push (specification, *Authentication* 4 to 7, and
 * *Errors*).
 */
import type { FastifyRequest } from "fastify";
import { HttpProblem, unauthenticated } from "../../wire/http-problem.ts";
import { authorizationOf, basicCredentials, checkApiVersion } from "../../wire/request-authorization.ts";
import type { AccessRule } from "../http/access.ts";
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
  /** Null: Basic credentials name none. */
  readonly clientId: string | null;
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
}

export function createGuard({ identity, people, tokens, passwords }: GuardParts): Guard {
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
      const principal =
        basic && scheme === "basic" ? await byPassword(credentials, request.ip) : await byToken(request, scopes);
      const { user, accountId } = principal;
      if (right !== null && !hasRight(user, accountId, right))
        throw new HttpProblem(403, "missing-right", `the user ${user.username} lacks the right: ${RIGHT_WORDS[right]}`);
      return principal;
    },
  };
}
