/** The console's people: how they come in, and who a request is from. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { type Browser, CSRF_HEADER, createBrowser, csrfTokenOf, isCsrfToken } from "#core/pages/browser.ts";
import { createPasswords, type Passwords } from "#core/sign-in/passwords.ts";
import { createSignInThrottle } from "#core/sign-in/throttle.ts";
import type { Person } from "../api/endpoint.ts";
import { isKnownHost } from "./hosts.ts";
import { createLinks, type OneTimeLinks } from "./links.ts";
import { type ConsoleOptions, consoleRefusal, hasPeople } from "./options.ts";
import { createSessions, type Sessions } from "./sessions.ts";

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
