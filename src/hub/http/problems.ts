/** Errors of the hub as problem details; the response itself is in `wire/http-problem.ts`. */
import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { TransientError } from "#core/errors.ts";
import { frameworkWords } from "#wire/framework-words.ts";
import {
  frameworkProblem,
  HttpProblem,
  installProblemHandlers,
  invalidRequest,
  type ProblemCode,
  problemBody,
  sendProblem,
  TITLES,
} from "#wire/http-problem.ts";
import { AccountFull, fullWords } from "../account-limits.ts";
import type { FullDisk } from "../full-disk.ts";
import { LongFilter } from "../store/filter.ts";
import { SlicesFull } from "../store/form-values.ts";
import { StructureHeld } from "../store/structure-hold.ts";
import { fieldWords } from "./field-words.ts";

export function invalidField(path: string, message: string): HttpProblem {
  return invalidRequest(`${path}: ${message}`, [{ path, message }]);
}

export function notSupported(what: string, reason: string): HttpProblem {
  return new HttpProblem(501, "not-supported", `${what} is not supported by this hub: ${reason}`);
}

/** Parses a query or body; faults become a 400 that names each field. */
export function parsed<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const why = unfit(input);
  if (why !== null) throw invalidRequest(why);
  const result = schema.safeParse(input, { error: fieldWords });
  if (result.success) return result.data;
  const errors = result.error.issues.slice(0, 20).map((issue) => ({
    path: placeOf(issue.path, input),
    message: issue.message,
  }));
  throw invalidRequest(errors.map((error) => sentence(error.path || "the body", error.message)).join("; "), errors);
}

/** `typeId is missing`; other words of a schema stand behind a colon. */
function sentence(path: string, words: string): string {
  return /^(is|are|must|has|have|holds|may) /.test(words) ? `${path} ${words}` : `${path}: ${words}`;
}

/** `ids` for a single value, which counts as a list, and `ids.1` in a list. */
function placeOf(path: readonly PropertyKey[], input: unknown): string {
  const [first, at, ...rest] = path;
  const isSingle =
    typeof at === "number" && rest.length === 0 && !Array.isArray(Reflect.get(Object(input), first ?? ""));
  return (isSingle && first !== undefined ? [first] : path).map(String).join(".");
}

/** Far beyond any form; the code that checks and stores a body recurses at each level. */
const DEPTH_MAX = 64;

/** Why a body or a query can neither be checked nor stored; null when it can. Not recursive. */
export function unfit(input: unknown): string | null {
  const rest: { readonly value: unknown; readonly depth: number }[] = [{ value: input, depth: 0 }];
  for (let at = rest.pop(); at !== undefined; at = rest.pop()) {
    const { value, depth } = at;
    if (typeof value === "string" && value.includes("\0"))
      return "a text holds a NUL character, which cannot be stored";
    if (typeof value !== "object" || value === null) continue;
    if (depth >= DEPTH_MAX) return `the body is nested more than ${DEPTH_MAX} levels deep`;
    for (const [name, inner] of Object.entries(value)) {
      if (name.includes("\0")) return "a name holds a NUL character, which cannot be stored";
      rest.push({ value: inner, depth: depth + 1 });
    }
  }
  return null;
}

/** The answer names nothing of the hub's own surroundings: its log does. */
const HELD =
  "a form or a file of master data changes much of this account, or its structure changes all the time, and nothing " +
  "was changed here: send the request again in a minute";
const AGAIN = "something that the hub needs does not answer; send the request again later";
const AGAIN_SEC = 10;
/** Addresses of the push interface, without its own beginning. */
const PUSH_ADDRESS = /^\/+api\/+(?=(?:data|standard|generic)\b)/i;
/** Value of `WWW-Authenticate`. */
const CHALLENGE = "Bearer";

function longFilter({ limitMs }: LongFilter): string {
  return (
    `the filter or the search took longer than ${limitMs / 1_000} s over what this account has ` +
    "(`limits.filterTime` of the hub): make it shorter, with fewer texts to compare, or add other filters beside it"
  );
}

export function installProblems(app: FastifyInstance, { log, problemOf, hasStored }: FullDisk): void {
  app.addHook("onRequest", async (request) => {
    if (request.url.includes("%00")) throw invalidRequest("the URL holds a NUL character");
  });
  app.addHook("onResponse", async ({ method }, { statusCode }) => {
    if (method !== "GET" && method !== "HEAD" && statusCode < 300) hasStored();
  });
  installProblemHandlers(app, {
    challenge: CHALLENGE,
    known: (url) => (PUSH_ADDRESS.test(url) ? `; data is pushed to ${url.replace(PUSH_ADDRESS, "/push/api/")}` : ""),
    faultOf(thrown, place) {
      const full = problemOf(thrown);
      if (full !== null) return full;
      if (thrown instanceof SlicesFull) return new HttpProblem(409, "quota-exceeded", thrown.message);
      if (thrown instanceof AccountFull) return new HttpProblem(409, "quota-exceeded", fullWords(thrown));
      if (thrown instanceof StructureHeld) return new HttpProblem(409, "conflict", HELD);
      if (thrown instanceof LongFilter) return invalidRequest(longFilter(thrown));
      if (thrown instanceof TransientError) {
        log.warn({ err: thrown, ...place }, "request failed; later it may not");
        return new HttpProblem(503, "unavailable", AGAIN, undefined, AGAIN_SEC);
      }
      log.error({ err: thrown, ...place }, "request failed");
      return new HttpProblem(500, "internal", "the hub failed to answer; its log says why. Try again later.");
    },
  });
}

/**
 * Requests that are refused before a route is found (Fastify's options): unreadable addresses, and input that
 * is not HTTP.
 */
export const belowRoutes = {
  frameworkErrors: (thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const status = thrown.statusCode ?? 400;
    void sendProblem(reply, frameworkProblem(status, frameworkWords(thrown, request)), CHALLENGE);
  },
  clientErrorHandler: (thrown: Error & { readonly code?: string }, socket: Socket): void => {
    if (thrown.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const [status, code, detail] = CLIENT_ERRORS[thrown.code ?? ""] ?? UNREADABLE;
    const body = problemBody(new HttpProblem(status, code, detail));
    socket.end(
      `HTTP/1.1 ${status} ${TITLES[status]}\r\nContent-Type: ` +
        `application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: ` +
        `close\r\n\r\n${body}`,
    );
  },
};

/** Addresses that clients put together carelessly lead to their route, too. */
export const ROUTER = {
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  caseSensitive: false,
  maxParamLength: 1_000,
};

const UNREADABLE = [400, "invalid-request", "the request is no HTTP that can be read"] as const;
const CLIENT_ERRORS: Readonly<Record<string, readonly [number, ProblemCode, string]>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    "too-large",
    "the address and the headers are too long; POST /data takes its parameters in a body",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "invalid-request", "the request did not end in time"],
};
