/**
 * A sign-in that is in progress at a provider. It is kept in a cookie of the browser that began it, so that the answer
 * counts in that browser alone, and at any of several processes.
 */
import type {} from "@fastify/cookie";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Checks } from "./provider.ts";

export interface Attempt {
  readonly provider: string;
  readonly checks: Checks;
  /** Path of this server to which the person wanted; null: no certain one. */
  readonly to: string | null;
  readonly expiresMs: number;
}

const shape = z.strictObject({
  provider: z.string(),
  checks: z.strictObject({ state: z.string(), nonce: z.string(), verifier: z.string() }),
  to: z.string().nullable(),
  expiresMs: z.number(),
});

/** To sign in at the provider. */
export const ATTEMPT_MS = 15 * 60_000;

export interface AttemptCookie {
  write(reply: FastifyReply, attempt: Attempt): void;
  /** Null: there is none, or it is no longer valid. */
  read(request: FastifyRequest, nowMs: number): Attempt | null;
  clear(reply: FastifyReply): void;
}

export function createAttemptCookie(cookie: string, isSecure: boolean): AttemptCookie {
  // A browser takes a cookie of this prefix from nothing but this very host over TLS.
  const name = isSecure ? `__Host-${cookie}` : cookie;
  const attributes = { path: "/", httpOnly: true, sameSite: "lax", secure: isSecure } as const;
  return {
    write(reply, attempt) {
      const value = Buffer.from(JSON.stringify(attempt)).toString("base64url");
      void reply.setCookie(name, value, { ...attributes, maxAge: ATTEMPT_MS / 1_000 });
    },
    read(request, nowMs) {
      const attempt = attemptOf(request.server.parseCookie(request.headers.cookie ?? "")[name]);
      return attempt !== null && attempt.expiresMs > nowMs ? attempt : null;
    },
    clear: (reply) => void reply.clearCookie(name, attributes),
  };
}

function attemptOf(value: string | undefined): Attempt | null {
  try {
    return shape.parse(JSON.parse(Buffer.from(value ?? "", "base64url").toString("utf8")));
  } catch {
    return null;
  }
}
