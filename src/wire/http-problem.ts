/**
 * Error responses of the hub and of HTTP intakes: problem details (RFC 9457) with a stable `code`; shape in
 * `problem.ts`.
 */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { frameworkWords } from "./framework-words.ts";
import type { Problem } from "./problem.ts";

export type ProblemCode =
  | "invalid-request"
  | "invalid-json"
  | "too-large"
  | "unauthenticated"
  | "missing-scope"
  | "missing-right"
  | "unknown-token"
  | "not-found"
  | "gone"
  | "method-not-allowed"
  | "unsupported-media-type"
  | "unsupported-api-version"
  | "conflict"
  | "idempotency-conflict"
  | "too-many-requests"
  | "quota-exceeded"
  | "storage-full"
  | "backlog-full"
  | "unavailable"
  | "not-supported"
  | "internal";

export const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  414: "URI Too Long",
  416: "Range Not Satisfiable",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  507: "Insufficient Storage",
};
/** Characters; details quote the input. */
const DETAIL_MAX = 2_000;

export type ProblemErrors = NonNullable<Problem["errors"]>;

/** A response that ends a request; thrown by handlers and written by the error handler. */
export class HttpProblem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  readonly errors: ProblemErrors | undefined;
  /** Value of the header `Retry-After`. */
  readonly retryAfterSec: number | undefined;

  constructor(status: number, code: ProblemCode, detail: string, errors?: ProblemErrors, retryAfterSec?: number) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.retryAfterSec = retryAfterSec;
  }
}

export function invalidRequest(detail: string, errors?: ProblemErrors): HttpProblem {
  return new HttpProblem(400, "invalid-request", detail, errors);
}

export function unauthenticated(detail: string): HttpProblem {
  return new HttpProblem(401, "unauthenticated", detail);
}

/** The problem for a client error that Fastify itself answers with: malformed JSON, limits, media types. */
export function frameworkProblem(status: number, detail: string): HttpProblem {
  return new HttpProblem(status, CODES[status] ?? "invalid-request", detail);
}

const CODES: Readonly<Record<number, ProblemCode>> = {
  404: "not-found",
  413: "too-large",
  414: "too-large",
  415: "unsupported-media-type",
};

/** Returns the JSON text of a problem. */
export function problemBody(thrown: HttpProblem): string {
  const body: Problem = {
    type: "about:blank",
    code: thrown.code,
    title: TITLES[thrown.status] ?? "Error",
    status: thrown.status,
    detail: thrown.message.slice(0, DETAIL_MAX),
    ...(thrown.errors === undefined ? {} : { errors: thrown.errors }),
  };
  return JSON.stringify(body);
}

/** @param challenge Value of `WWW-Authenticate` with status 401. */
export function sendProblem(reply: FastifyReply, thrown: HttpProblem, challenge: string): FastifyReply {
  if (thrown.status === 401) void reply.header("www-authenticate", challenge);
  if (thrown.retryAfterSec !== undefined) void reply.header("retry-after", thrown.retryAfterSec);
  return reply.code(thrown.status).type("application/problem+json").send(problemBody(thrown));
}

interface ProblemHandlers {
  /** Value of `WWW-Authenticate`. */
  readonly challenge: string;
  /** The answer to any other error, which it logs. */
  readonly faultOf: (thrown: Error, request: { readonly method: string; readonly url: string }) => HttpProblem;
  /** Completes the message about an unknown address: the ones that the server has. */
  readonly known?: (url: string) => string;
}

/** Errors of handlers, and those of Fastify itself (malformed JSON, limits, media types), are answered as problems. */
export function installProblemHandlers(
  app: FastifyInstance,
  { challenge, faultOf, known = () => "" }: ProblemHandlers,
): void {
  const placeOf = ({ method, url }: FastifyRequest) => ({ method, url: url.split("?")[0] ?? "" });
  app.setErrorHandler((thrown: FastifyError | HttpProblem, request, reply) => {
    if (thrown instanceof HttpProblem) return sendProblem(reply, thrown, challenge);
    const status = thrown.statusCode ?? 500;
    if (status >= 400 && status < 500)
      return sendProblem(reply, frameworkProblem(status, frameworkWords(thrown, request)), challenge);
    return sendProblem(reply, faultOf(thrown, placeOf(request)), challenge);
  });
  app.setNotFoundHandler((request, reply) => {
    const { method, url } = placeOf(request);
    return sendProblem(reply, new HttpProblem(404, "not-found", `no ${method} ${url}${known(url)}`), challenge);
  });
}
