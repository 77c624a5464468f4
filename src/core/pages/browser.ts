/**
 * The browser's side of a session: its cookie, the token that forms and scripts send with it, and the addresses of
 * pages.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";

/** Characters of a cookie's value: 32 random bytes in base64url. */
const VALUE = /^[A-Za-z0-9_-]{43}$/;
export const CSRF_HEADER = "x-csrf-token";

declare module "fastify" {
  interface FastifyRequest {
    /** The cookie that its answer sets; null when it sets none. */
    newCookie: string | null;
  }
}

export interface Browser {
  /** Its cookies are for TLS alone. */
  readonly isSecure: boolean;
  /** In front of the path of every page: the path of `publicUrl`, without a slash at the end. */
  readonly base: string;
  /** Value of the session's cookie; null without one. */
  cookieOf(request: FastifyRequest): string | null;
  setCookie(reply: FastifyReply, value: string): void;
  clearCookie(reply: FastifyReply): void;
  /**
   * False when the browser says that another site caused the request. Browsers that say nothing have to bring the
   * token of the form alone.
   */
  isSameOrigin(request: FastifyRequest): boolean;
}

interface BrowserFacts {
  readonly publicUrl?: string | undefined;
  /** Name of the cookie, which may depend on where the request came in. */
  readonly cookie: string | ((request: FastifyRequest) => string);
  /** `strict`: not even a link of another site brings the session. */
  readonly sameSite: "lax" | "strict";
  /** The server itself speaks TLS. */
  readonly hasTls?: boolean;
}

export function createBrowser({ publicUrl, cookie, sameSite, hasTls = false }: BrowserFacts): Browser {
  const address = publicUrl === undefined ? null : new URL(publicUrl);
  const isSecure = address === null ? hasTls : address.protocol === "https:";
  // A browser takes a cookie of this prefix from nothing but this very host over TLS.
  const nameOf = (request: FastifyRequest) => {
    const name = typeof cookie === "string" ? cookie : cookie(request);
    return isSecure ? `__Host-${name}` : name;
  };
  const attributes = { path: "/", httpOnly: true, sameSite, secure: isSecure } as const;
  return {
    isSecure,
    base: address?.pathname.replace(/\/+$/, "") ?? "",
    cookieOf(request) {
      const value = request.server.parseCookie(request.headers.cookie ?? "")[nameOf(request)] ?? "";
      return VALUE.test(value) ? value : null;
    },
    setCookie(reply, value) {
      reply.request.newCookie = value;
      void reply.setCookie(nameOf(reply.request), value, attributes);
    },
    clearCookie: (reply) => void reply.clearCookie(nameOf(reply.request), attributes),
    isSameOrigin(request) {
      const site = request.headers["sec-fetch-site"];
      if (site !== undefined) return site === "same-origin";
      const { origin } = request.headers;
      // A form of a page without a referrer sends `null`.
      if (origin === undefined || origin === "null") return true;
      return origin === (address?.origin ?? `${request.protocol}://${request.host}`);
    },
  };
}

export function newCookieValue(): string {
  return randomBytes(32).toString("base64url");
}

/** The store never holds the value itself: a copy of it opens no session. */
export function hashOfCookie(value: string): string {
  return hash("sha256", value, "base64url");
}

/** Belongs to one cookie, which it does not reveal. */
export function csrfTokenOf(cookie: string): string {
  return hash("sha256", `csrf ${cookie}`, "base64url");
}

export function isCsrfToken(cookie: string | null, token: unknown): boolean {
  if (cookie === null || typeof token !== "string") return false;
  const [expected, given] = [Buffer.from(csrfTokenOf(cookie)), Buffer.from(token)];
  return expected.length === given.length && timingSafeEqual(expected, given);
}

/**
 * A path of this server; null for anything else, above all for addresses of other hosts: `//host`, `/\host`, and what a
 * browser reads as one of them.
 */
export function localPath(text: unknown): string | null {
  if (typeof text !== "string" || text.length > 2_000 || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text)) return null;
  if (text.includes("\\")) return null;
  const { origin, pathname, search } = new URL(text, "http://server.invalid");
  // `/.//host` has become `//host`.
  return origin === "http://server.invalid" && !pathname.startsWith("//") ? pathname + search : null;
}
