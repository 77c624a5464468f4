/**
 * Sessions of browsers. Each request reads the session, its user and its account again: a user who was deactivated, has
 * another password or lost the account is signed out with the next request.
 */
import { hash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#core/clock.ts";
import {
  type Browser,
  CSRF_HEADER,
  createBrowser,
  hashOfCookie,
  isCsrfToken,
  localPath,
  newCookieValue,
} from "#core/pages/browser.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubOptions } from "../options.ts";
import type { Actor, AuditFact } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import type { HubStore } from "../store/store.ts";
import { defaultAccount, isAdmin, mayAccess, mayManage } from "../token/rights.ts";
import { userGeneration } from "../token/tokens.ts";

const PATHS = { code: "/sign-in/code", password: "/password/change" } as const;

/** A session is noted as seen so often at most, and ten times within the time after which it ends unused. */
const SEEN_MS = 60_000;
const SEEN_TIMES = 10;
const COOKIE = "headgate-session";
const AGENT_CHARACTERS_MAX = 300;

export interface BrowserSession {
  readonly id: number;
  /** The user whose rights count. */
  readonly user: UserRecord;
  readonly accountId: number;
  /** The user who acts as the other one; null: the user himself. */
  readonly impersonator: UserRecord | null;
  /** Has to be given before the session counts for more than the page that takes it. */
  readonly missing: "code" | "password" | null;
}

interface SignIn {
  readonly user: UserRecord;
  /** The default account of the user when absent. */
  readonly accountId?: number;
  /** True when the user has given it, or another service answers for it. */
  readonly secondFactor: boolean;
}

export interface Sessions {
  readonly browser: Browser;
  /** The session of the request's cookie; null without a valid one. */
  of(request: FastifyRequest): Promise<BrowserSession | null>;
  /** For the JSON interface: also brings its token in the header `X-CSRF-Token`, and comes from our own pages. */
  ofScript(request: FastifyRequest): Promise<BrowserSession | null>;
  /** For reads by a link or a download of our own pages, which have no headers of a script: the browser says so. */
  ofLink(request: FastifyRequest): Promise<BrowserSession | null>;
  /** Signs the user in, with a new cookie; the browser's former session ends. Null for a user without an account. */
  open(request: FastifyRequest, reply: FastifyReply, signIn: SignIn): Promise<BrowserSession | null>;
  /** The browser's session becomes one of another user; its end signs the browser out. */
  impersonate(request: FastifyRequest, reply: FastifyReply, user: UserRecord, accountId: number): Promise<void>;
  /**
   * The session continues with a new cookie, after the password or the second factor of the user was given or changed;
   * the user is read again.
   */
  renew(request: FastifyRequest, reply: FastifyReply, facts: { readonly secondFactor?: true }): Promise<void>;
  /** Signs the browser out. */
  end(request: FastifyRequest, reply: FastifyReply): Promise<void>;
}

export interface SessionParts {
  readonly store: Pick<HubStore, "people" | "sessions">;
  readonly options: Pick<HubOptions, "publicUrl" | "sessions">;
  readonly clock: Clock;
}

export function createSessions(parts: SessionParts): Sessions {
  const { store, options, clock } = parts;
  const { publicUrl } = options;
  const browser = createBrowser({ publicUrl, cookie: COOKIE, sameSite: "lax" });
  const recordOf = async (request: FastifyRequest) => {
    const cookie = browser.cookieOf(request);
    return cookie === null ? null : store.sessions.byToken(hashOfCookie(cookie));
  };
  const of = async (request: FastifyRequest): Promise<BrowserSession | null> => {
    const cookie = browser.cookieOf(request);
    return cookie === null ? null : sessionOf(parts, cookie);
  };
  const begin = async (request: FastifyRequest, reply: FastifyReply, who: Opened, fact: Fact): Promise<number> => {
    const former = await recordOf(request);
    if (former !== null) await store.sessions.end(former, null);
    const value = newCookieValue();
    const nowMs = clock.now().epochMilliseconds;
    const session = { ...who, ...beginning(request, nowMs), expiresMs: nowMs + options.sessions.lifetime };
    const id = await store.sessions.open(hashOfCookie(value), session, { ...fact, atMs: nowMs });
    browser.setCookie(reply, value);
    return id;
  };
  return {
    browser,
    of,
    async ofScript(request) {
      const isOurs = isCsrfToken(browser.cookieOf(request), request.headers[CSRF_HEADER]);
      const session = isOurs && browser.isSameOrigin(request) ? await of(request) : null;
      return session?.missing === null ? session : null;
    },
    async ofLink(request) {
      const session = isOwnLink(request) ? await of(request) : null;
      return session?.missing === null ? session : null;
    },
    async open(request, reply, { user, accountId = defaultAccount(user), secondFactor }) {
      if (accountId === undefined) return null;
      const who = { userId: user.id, accountId, impersonatorId: null, generation: generationOf(user), secondFactor };
      const fact = ownFact({ user, impersonator: null }, request, { action: "session.began", atMs: 0 });
      const id = await begin(request, reply, who, fact);
      return { id, user, accountId, impersonator: null, missing: missingOf(user, secondFactor) };
    },
    async impersonate(request, reply, user, accountId) {
      const session = await of(request);
      if (session === null || session.impersonator !== null || session.missing !== null)
        throw new Error("only a user who has signed in himself may act as another");
      const own = { impersonatorId: session.user.id, generation: generationOf(session.user) };
      const actor = actorIn(session, request);
      const fact = { actor, action: "impersonation.began" as const, subject: subjectOf(user) };
      await begin(request, reply, { userId: user.id, accountId, ...own, secondFactor: true }, fact);
    },
    async renew(request, reply, facts) {
      const record = await recordOf(request);
      const person = record === null ? null : await store.people.entrant(record.impersonatorId ?? record.userId);
      if (record === null || person === null) return;
      const value = newCookieValue();
      const renewed = { secondFactor: record.secondFactor, ...facts, generation: generationOf(person) };
      if (await store.sessions.renew(record.id, hashOfCookie(value), renewed)) browser.setCookie(reply, value);
    },
    async end(request, reply) {
      const record = await recordOf(request);
      const session = await of(request);
      const atMs = clock.now().epochMilliseconds;
      const action = session?.impersonator == null ? "session.ended" : "impersonation.ended";
      if (record !== null)
        await store.sessions.end(record, session === null ? null : ownFact(session, request, { action, atMs }));
      browser.clearCookie(reply);
    },
  };
}

/** No page of another site can set the header, or make a browser send it with this value. */
export function isOwnLink({ method, headers }: FastifyRequest): boolean {
  return method === "GET" && headers["sec-fetch-site"] === "same-origin";
}

function beginning({ ip, headers }: FastifyRequest, nowMs: number) {
  const agent = (headers["user-agent"] ?? "").slice(0, AGENT_CHARACTERS_MAX);
  return { createdMs: nowMs, seenMs: nowMs, address: ip, agent };
}

type Fact = Omit<AuditFact, "atMs">;

interface Opened {
  readonly userId: number;
  readonly accountId: number;
  readonly impersonatorId: number | null;
  readonly generation: string;
  readonly secondFactor: boolean;
}

async function sessionOf(parts: SessionParts, cookie: string): Promise<BrowserSession | null> {
  const { store, options, clock } = parts;
  const record = await store.sessions.byToken(hashOfCookie(cookie));
  const nowMs = clock.now().epochMilliseconds;
  if (record === null || record.expiresMs <= nowMs || record.seenMs + options.sessions.idle <= nowMs) return null;
  const { id, userId, accountId, impersonatorId, secondFactor } = record;
  const [user, impersonator] = await Promise.all([
    store.people.entrant(userId),
    impersonatorId === null ? null : store.people.entrant(impersonatorId),
  ]);
  const person = impersonatorId === null ? user : impersonator;
  if (user === null || person === null || record.generation !== generationOf(person)) return null;
  if (!mayAccess(user, accountId) || !mayAccess(person, accountId)) return null;
  // One who has lost the right to manage the user meanwhile no longer acts as him.
  if (impersonator !== null && (isAdmin(user) || !mayManage(impersonator, accountId, user))) return null;
  if (record.seenMs + Math.min(SEEN_MS, options.sessions.idle / SEEN_TIMES) <= nowMs)
    await store.sessions.touch(id, nowMs);
  const missing = impersonator === null ? missingOf(user, secondFactor) : null;
  return { id, user, accountId, impersonator, missing };
}

function missingOf({ totp, mustChangePassword }: UserRecord, secondFactor: boolean): BrowserSession["missing"] {
  if (!secondFactor && totp !== null && totp.confirmedMs !== null) return "code";
  return mustChangePassword ? "password" : null;
}

/** Changes when the sessions of the user end. The hash reveals nothing about the password. */
function generationOf(user: UserRecord): string {
  return hash("sha256", `session ${userGeneration(user)}`, "base64url").slice(0, 22);
}

// The actor of a request from a browser, for the audit trail.

type Person = Pick<BrowserSession, "user" | "impersonator">;

export function actorIn({ user, impersonator }: Person, { ip }: FastifyRequest): Actor {
  const other = impersonator === null ? null : { id: impersonator.id, name: impersonator.username };
  return { id: user.id, name: user.username, impersonator: other, address: ip };
}

/** Something that a user did about himself. */
export function ownFact(
  person: Person,
  request: FastifyRequest,
  { action, atMs, facts = {} }: Pick<AuditFact, "action" | "atMs" | "facts">,
): AuditFact {
  const { user } = person;
  return { atMs, actor: actorIn(person, request), action, subject: subjectOf(user), facts };
}

export function subjectOf({ id, username }: Pick<UserRecord, "id" | "username">): AuditFact["subject"] {
  return { kind: "user", id, name: username };
}

// Pages are for browsers: a visitor without a session is led to the sign-in instead of being refused.

/** The visitors of a page: all; one who has begun to sign in; one who has signed in. */
export type PageAccess = "visitor" | "entering" | "member";

/** Path of the page that takes the next step of a sign-in, or the one that was asked for. */
export function nextPath(missing: BrowserSession["missing"], next: string | null): string {
  if (missing === null) return next ?? "/me";
  return PATHS[missing] + (next === null ? "" : `?next=${encodeURIComponent(next)}`);
}

/** Returns the session, or null where it is not needed; `led` when the answer leads elsewhere. */
export async function admitToPage(
  sessions: Sessions,
  access: PageAccess,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<BrowserSession | null | "led"> {
  const isQuestion = request.method === "GET" || request.method === "HEAD";
  if (!isQuestion && !sessions.browser.isSameOrigin(request))
    throw new HttpProblem(403, "missing-right", "this form was sent by a page of another site, and nothing was done");
  const session = await sessions.of(request);
  if (access === "visitor" || (access === "entering" && session !== null)) return session;
  // A form cannot be sent again by an address, so that only questions are repeated after the sign-in.
  const asked = isQuestion ? localPath(request.url) : null;
  const ask = asked === null ? "?done=ended" : `?next=${encodeURIComponent(asked)}`;
  if (session === null) {
    void reply.redirect(`${sessions.browser.base}/sign-in${ask}`, 303);
    return "led";
  }
  if (session.missing === null) return session;
  void reply.redirect(sessions.browser.base + nextPath(session.missing, asked), 303);
  return "led";
}
