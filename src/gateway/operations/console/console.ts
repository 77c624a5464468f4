/** The console's people: how they come in, and who a request is from. */

import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { isIP } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Clock } from "#core/clock.ts";
import { ConfigError, systemCode } from "#core/errors.ts";
import { hostOf, isLoopback } from "#core/listen-address.ts";
import type { Logger } from "#core/log.ts";
import {
  type Browser,
  CSRF_HEADER,
  createBrowser,
  csrfTokenOf,
  hashOfCookie,
  isCsrfToken,
  newCookieValue,
} from "#core/pages/browser.ts";
import { PRIVATE_FILE } from "#core/private-files.ts";
import { createPasswords, type Passwords } from "#core/sign-in/passwords.ts";
import { createSignInThrottle } from "#core/sign-in/throttle.ts";
import type { Person } from "../api/endpoint.ts";
import { type ConsoleOptions, consoleRefusal, hasPeople } from "./options.ts";

export interface Console {
  readonly options: ConsoleOptions;
  readonly browser: Browser;
  readonly clock: Clock;
  readonly sessions: Sessions;
  /** Null where people sign in with passwords, and where the console is not served. */
  readonly links: OneTimeLinks | null;
  /** Null where no person signs in with a password. */
  readonly passwords: (() => Promise<Passwords>) | null;
  /** Why the console is not served; null where it is. */
  readonly refusal: string | null;
  /** False for a page of another site that reaches this machine under its own name. */
  isKnownHost(request: FastifyRequest): boolean;
  /** `forged`: a session asks for a change without its token, or from a page of another site. */
  callerOf(request: FastifyRequest): { readonly person: Person; readonly csrfToken: string } | "forged" | null;
  signIn(request: FastifyRequest, reply: FastifyReply, person: Person): void;
}

export interface ConsoleParts {
  readonly listen: string;
  readonly console: ConsoleOptions;
  readonly clock: Clock;
  /** The file with the links that sign in once. */
  readonly linksFile: string;
  readonly log: Logger;
}

/** Milliseconds for which a link can be used. */
const LINK_MS = 3_600_000;
const LINKS_MAX = 100;
const link = z.object({ name: z.string(), untilMs: z.number() });
/** By the hash of the code, oldest first. */
const keptLinks = z.array(z.tuple([z.string(), link]));

/** With more, the one that was not used for longest ends. */
const SESSIONS_MAX = 1_000;

export function createConsole({ listen, console: options, clock, linksFile, log }: ConsoleParts): Console {
  const { publicUrl, tls, users } = options;
  const browser = createBrowser({
    ...{ publicUrl, sameSite: "strict", hasTls: tls !== undefined },
    // Cookies are those of a host, whatever the port, and a machine may have several gateways.
    cookie: ({ raw: { socket } }) =>
      `headgate-console-${publicUrl === undefined ? (socket.localPort ?? "") : "public"}`,
  });
  const sessions = createSessions(browser, options, clock);
  const refusal = consoleRefusal({ listen, console: options });
  const place = { listen: options.listen ?? listen, publicUrl };
  return {
    ...{ options, browser, sessions, clock, refusal },
    passwords: refusal === null && users.length > 0 ? passwordsOf(options, clock) : null,
    links: refusal === null && !hasPeople(options) ? createLinks(clock, linksFile) : null,
    isKnownHost: ({ headers }) => isKnownHost(headers.host, place),
    callerOf(request) {
      const cookie = browser.cookieOf(request);
      const person = refusal === null && isKnownHost(request.headers.host, place) ? sessions.personOf(request) : null;
      if (person === null || cookie === null) return null;
      const isQuestion = request.method === "GET" || request.method === "HEAD";
      if (isQuestion) return { person, csrfToken: csrfTokenOf(cookie) };
      if (!browser.isSameOrigin(request) || !isCsrfToken(cookie, request.headers[CSRF_HEADER])) return "forged";
      return { person, csrfToken: csrfTokenOf(cookie) };
    },
    signIn(request, reply, person) {
      sessions.open(request, reply, person);
      log.info({ person: person.name, role: person.role, from: request.ip }, "signed in to the console");
    },
  };
}

/** Sign-ins that may wait for their password to be hashed. */
const QUEUE_MAX = 200;

/** Made when it is first used, since that hashes a password. */
function passwordsOf({ throttle }: ConsoleOptions, clock: Clock): () => Promise<Passwords> {
  let made: Promise<Passwords> | null = null;
  return () => {
    made ??= createPasswords(clock, createSignInThrottle(throttle, clock), QUEUE_MAX);
    return made;
  };
}

/** The address of the console for browsers: its public one, or the one at which it listens. */
export function consoleUrl({ options: { publicUrl } }: Console, url: string): string {
  const base = publicUrl ?? url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
  return `${base.replace(/\/+$/, "")}/console`;
}

/** A link that signs in once. Throws `ConfigError` where people sign in with passwords. */
export function oneTimeLink(people: Console, url: string, name: string) {
  if (people.links === null)
    throw new ConfigError("HG-OPS-007", {
      operation: "make link",
      subject: consoleUrl(people, url),
      ...(people.refusal === null ? {} : { message: people.refusal }),
    });
  const { code, expiresAt } = people.links.make(name);
  return { url: `${consoleUrl(people, url)}/enter?code=${code}`, expiresAt: expiresAt.toString() };
}

// The names under which browsers may reach the console. A page of another site whose name was made to lead to this
// machine (DNS rebinding) asks under its own name, and is refused.

/** `publicUrl`: where it is given, browsers use that or loopback alone. */
function isKnownHost(
  host: string | undefined,
  { listen, publicUrl }: { readonly listen: string; readonly publicUrl?: string | undefined },
): boolean {
  if (host === undefined) return false;
  const name = hostOf(host).toLowerCase();
  if (isLoopback(name)) return true;
  if (publicUrl !== undefined) return host.toLowerCase() === new URL(publicUrl).host;
  // The address of a machine leads to that machine, and to no other.
  return name === hostOf(listen).toLowerCase() || isIP(name.replace(/^\[|\]$/g, "")) !== 0;
}

// Sessions of the console's browsers, in memory: a restart signs everyone out. They end when they are not used for
// `idle`, and after `lifetime` in any case.

interface Session {
  readonly person: Person;
  readonly endsMs: number;
  seenMs: number;
}

interface Sessions {
  /** The person who has signed in with the request's browser; null without a valid session. */
  personOf(request: FastifyRequest): Person | null;
  /** Whether there is a valid session; this does not count as a use of it. */
  isOpen(request: FastifyRequest): boolean;
  /** The browser's former session ends. */
  open(request: FastifyRequest, reply: FastifyReply, person: Person): void;
  end(request: FastifyRequest, reply: FastifyReply): void;
}

function createSessions(
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

// Links that sign in once, for a console without users on loopback: the one who can read the log or the ledger may.
// Their codes are kept as hashes, in a file that only the gateway's user can read, so that a restart leaves them valid.

interface OneTimeLinks {
  /** The code of a link that signs in as an operator of this name. */
  make(name: string): { readonly code: string; readonly expiresAt: Temporal.Instant };
  /** Null for a code that was used, is too old, or never was. */
  use(code: string): Person | null;
}

type Links = Map<string, z.output<typeof link>>;

function createLinks(clock: Clock, path: string): OneTimeLinks {
  const links = readLinks(path);
  const nowMs = () => clock.now().epochMilliseconds;
  return {
    make(name) {
      const [oldest] = links.keys();
      if (links.size >= LINKS_MAX && oldest !== undefined) links.delete(oldest);
      const code = randomBytes(32).toString("base64url");
      const untilMs = nowMs() + LINK_MS;
      links.set(hashOfCookie(code), { name, untilMs });
      saveLinks(path, links);
      return { code, expiresAt: Temporal.Instant.fromEpochMilliseconds(untilMs) };
    },
    use(code) {
      const key = hashOfCookie(code);
      const found = links.get(key);
      if (found === undefined) return null;
      links.delete(key);
      saveLinks(path, links);
      const leftMs = found.untilMs - nowMs();
      // A clock that was set back would keep a link for longer.
      return leftMs <= 0 || leftMs > LINK_MS ? null : { name: found.name, role: "operator" };
    },
  };
}

/** None where the file is missing or damaged: the command makes another link. */
function readLinks(path: string): Links {
  try {
    return new Map(keptLinks.parse(JSON.parse(readFileSync(path, "utf8"))));
  } catch (thrown) {
    if (systemCode(thrown) !== undefined || thrown instanceof SyntaxError || thrown instanceof z.ZodError)
      return new Map();
    throw thrown;
  }
}

/** Durable before a use signs in. On a full disk the file is removed, lest a used link works again. */
function saveLinks(path: string, links: Links): void {
  const temporary = `${path}.part`;
  try {
    const file = openSync(temporary, "w", PRIVATE_FILE);
    try {
      writeSync(file, JSON.stringify([...links]));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    for (const one of [temporary, path]) rmSync(one, { force: true });
  }
}
