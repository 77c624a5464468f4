/**
 * Sessions of the console's browsers, in memory: a restart signs everyone out. They end when they are not used for
 * `idle`, and after `lifetime` in any case.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#core/clock.ts";
import { type Browser, hashOfCookie, newCookieValue } from "#core/pages/browser.ts";
import type { Person } from "../api/endpoint.ts";
import type { ConsoleOptions } from "./options.ts";

/** With more, the one that was not used for longest ends. */
const SESSIONS_MAX = 1_000;

interface Session {
  readonly person: Person;
  readonly endsMs: number;
  seenMs: number;
}

export interface Sessions {
  /** The person who has signed in with the request's browser; null without a valid session. */
  personOf(request: FastifyRequest): Person | null;
  /** Whether there is a valid session; this does not count as a use of it. */
  isOpen(request: FastifyRequest): boolean;
  /** The browser's former session ends. */
  open(request: FastifyRequest, reply: FastifyReply, person: Person): void;
  end(request: FastifyRequest, reply: FastifyReply): void;
}

export function createSessions(
  browser: Browser,
  { idle, lifetime }: Pick<ConsoleOptions, "idle" | "lifetime">,
  clock: Clock,
): Sessions {
  /** By the hash of the cookie, in the order of their last use. */
  const sessions = new Map<string, Session>();
  const keyOf = (request: FastifyRequest) => {
    const cookie = browser.cookieOf(request);
    return cookie === null ? null : hashOfCookie(cookie);
  };
  const hasEnded = ({ endsMs, seenMs }: Session, nowMs: number) => nowMs >= endsMs || nowMs >= seenMs + idle;
  return {
    personOf(request) {
      const key = keyOf(request);
      const session = key === null ? undefined : sessions.get(key);
      if (key === null || session === undefined) return null;
      const nowMs = clock.monotonicMs();
      sessions.delete(key);
      if (hasEnded(session, nowMs)) return null;
      session.seenMs = nowMs;
      sessions.set(key, session);
      return session.person;
    },
    isOpen(request) {
      const session = sessions.get(keyOf(request) ?? "");
      return session !== undefined && !hasEnded(session, clock.monotonicMs());
    },
    open(request, reply, person) {
      sessions.delete(keyOf(request) ?? "");
      const [oldest] = sessions.keys();
      if (sessions.size >= SESSIONS_MAX && oldest !== undefined) sessions.delete(oldest);
      const value = newCookieValue();
      const nowMs = clock.monotonicMs();
      sessions.set(hashOfCookie(value), { person, seenMs: nowMs, endsMs: nowMs + lifetime });
      browser.setCookie(reply, value);
    },
    end(request, reply) {
      sessions.delete(keyOf(request) ?? "");
      browser.clearCookie(reply);
    },
  };
}
