/**
 * Authenticates callers: Bearer tokens on both interfaces, Basic on push (specification, *Authentication* 4 to 7, and
 * *Errors*).
 */
import type { FastifyRequest } from "fastify";
import type { Clock } from "#core/clock.ts";
import { CSRF_HEADER } from "#core/pages/browser.ts";
import type { Passwords } from "#core/sign-in/passwords.ts";
import { HttpProblem, unauthenticated } from "#wire/http-problem.ts";
import { authorizationOf, basicCredentials, checkApiVersion } from "#wire/request-authorization.ts";
import { type BrowserSession, isOwnLink, type PageAccess, type Sessions } from "../sessions/sessions.ts";
import type { IdentityStore } from "../store/identity.ts";
import type { PeopleStore } from "../store/people/people.ts";
import type { UserRecord } from "../store/people/records.ts";
import { innerUser } from "./inner.ts";
import { hashOfPersonalToken, isPersonalToken } from "./personal-token.ts";
import { defaultAccount, hasRight, mayAccess, RIGHT_WORDS, type Right } from "./rights.ts";
import { generationOf, type Tokens } from "./tokens.ts";

const NO_PASSWORD =
  "the user has no password here: sign in with a browser at /sign-in, and make a personal token at /me for programs";

/** The last use of a personal token is noted no more often. */
const USE_NOTED_MS = 60_000;

export interface Principal {
  readonly user: UserRecord;
  readonly accountId: number;
  /** Null: Basic credentials, personal tokens and browsers name none. */
  readonly clientId: string | null;
  /** Scopes of the token; absent: all. */
  readonly scopes?: readonly string[];
  /** A personal token, and no other credentials. */
  readonly isPersonal?: true;
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
  readonly clock: Clock;
}

export function createGuard({ identity, people, tokens, passwords, sessions, clock }: GuardParts): Guard {
  const bySession = async (request: FastifyRequest): Promise<Principal> => {
    const session = await sessions.ofScript(request);
    if (session !== null) return callerBy(session);
    throw unauthenticated("the session of this browser has ended, or X-CSRF-Token is not its own: sign in again");
  };
  const byLink = async (request: FastifyRequest): Promise<Principal> => {
    const session = await sessions.ofLink(request);
    if (session !== null) return callerBy(session);
    throw unauthenticated("the session of this browser has ended: sign in again");
  };
  const byPersonalToken = async (value: string, scopes: readonly string[]): Promise<Principal> => {
    const nowMs = clock.now().epochMilliseconds;
    const token = await people.apiToken(hashOfPersonalToken(value));
    if (token === null || token.expiresMs <= nowMs)
      throw unauthenticated("the personal token does not exist, was removed, or has expired");
    requireScope(scopes, token.scopes, "personal");
    const { id, userId, accountId, lastUsedMs } = token;
    const user = await people.entrant(userId);
    if (user === null || !mayAccess(user, accountId))
      throw unauthenticated("the user of the personal token may no longer enter its account");
    if (lastUsedMs === null || nowMs - lastUsedMs >= USE_NOTED_MS) await people.touchApiToken(id, nowMs);
    return { user, accountId, clientId: null, scopes: token.scopes, isPersonal: true };
  };
  const byToken = async (request: FastifyRequest, scopes: readonly string[]): Promise<Principal> => {
    const [scheme, token] = authorizationOf(request);
    if (scheme !== "bearer" || token === "") throw unauthenticated("send `Authorization: Bearer <access token>`");
    if (isPersonalToken(token)) return byPersonalToken(token, scopes);
    const claims = await tokens.verify(token);
    if (claims === null) throw unauthenticated("the access token is not valid or has expired");
    requireScope(scopes, claims.scopes, "access");
    const inner = innerUser(claims);
    if (inner !== null) return { user: inner, accountId: claims.accountId, clientId: claims.clientId };
    const [user, client] = await Promise.all([people.entrant(claims.userId), identity.client(claims.clientId)]);
    if (user === null || !mayAccess(user, claims.accountId))
      throw unauthenticated("the user of the access token may no longer enter its account");
    if (client === null || generationOf(user, client) !== claims.generation)
      throw unauthenticated("the client of the access token was removed, or its password or secret changed");
    return { user, accountId: claims.accountId, clientId: claims.clientId, scopes: claims.scopes };
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
      const isBrowser = request.headers.authorization === undefined;
      const isScript = isBrowser && request.headers[CSRF_HEADER] !== undefined;
      const isLink = isBrowser && !isScript && right === "read" && isOwnLink(request);
      const byHeader = () =>
        basic && scheme === "basic" ? byPassword(credentials, request.ip) : byToken(request, scopes);
      const principal = await (isScript ? bySession(request) : isLink ? byLink(request) : byHeader());
      const { user, accountId } = principal;
      if (right !== null && !hasRight(user, accountId, right))
        throw new HttpProblem(403, "missing-right", `the user ${user.username} lacks the right: ${RIGHT_WORDS[right]}`);
      return principal;
    },
  };
}

function requireScope(wanted: readonly string[], given: readonly string[], kind: "access" | "personal"): void {
  if (wanted.some((scope) => given.includes(scope))) return;
  throw new HttpProblem(401, "missing-scope", `the ${kind} token lacks the scope ${wanted.join(" or ")}`);
}

// Sign-in by name and password alone: the token interface, Basic credentials of a push, the file-transfer server.

interface NamedPassword {
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

type PasswordSignIn =
  | { readonly kind: "user"; readonly user: UserRecord }
  | { readonly kind: "wrong" }
  /** The password is right, but does not do by itself; or there is none. */
  | { readonly kind: "refused"; readonly why: string }
  /** The password was not compared. */
  | { readonly kind: "later"; readonly why: string; readonly seconds: number };

export async function signInByPassword(
  { people, passwords }: { readonly people: Pick<PeopleStore, "entrantByName">; readonly passwords: Passwords },
  { name, password, address }: NamedPassword,
): Promise<PasswordSignIn> {
  const user = await people.entrantByName(name);
  const verdict = await passwords.check(attemptOf(name, address), password, user?.passwordHash ?? null);
  if (verdict.kind === "later") return verdict;
  if (user?.passwordHash === null) return { kind: "refused", why: NO_PASSWORD };
  if (verdict.kind === "wrong" || user === null) return { kind: "wrong" };
  const why = passwordFault(user);
  return why === null ? { kind: "user", user } : { kind: "refused", why };
}

/** Guesses for a name count together, in whatever case they write it. */
export function attemptOf(name: string, address: string) {
  return { address, name: `user ${name.normalize("NFC").toLowerCase()}` };
}

/** Why a user with the right password has to take another way; null when the password is enough. */
export function passwordFault({ mustChangePassword, totp }: UserRecord): string | null {
  if (mustChangePassword) return "the password is temporary: sign in with a browser at /sign-in and change it first";
  if (totp !== null && totp.confirmedMs !== null)
    return "the user has a second factor: make a personal token at /me, or sign in with a browser";
  return null;
}

export interface AccessRule {
  /** Any of them is enough. */
  readonly scopes: readonly string[];
  /** Null: a page that everyone may see. */
  readonly right: Right | null;
  /** Accepts user name and password instead of a token. */
  readonly basic: boolean;
  /** A page of a browser: no token counts, only a session. */
  readonly page?: PageAccess;
}
