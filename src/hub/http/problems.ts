/** Error answers of the hub: problem details (RFC 9457) with a stable `code`; shape in `wire/problem.ts`. */
import type { FastifyError, FastifyInstance, FastifyReply } from "fastify";
import type { z } from "zod";
import type { Logger } from "../../support/log.ts";
import type { Problem } from "../../wire/index.ts";

export type ProblemCode =
  | "invalid-request"
  | "invalid-json"
  | "too-large"
  | "unauthenticated"
  | "missing-scope"
  | "missing-right"
  | "not-found"
  | "method-not-allowed"
  | "unsupported-media-type"
  | "unsupported-api-version"
  | "conflict"
  | "idempotency-conflict"
  | "too-many-requests"
  | "quota-exceeded"
  | "not-supported"
  | "internal";

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
};

export type ProblemErrors = NonNullable<Problem["errors"]>;

/** An answer that ends a request; thrown by handlers and written by the error handler. */
export class HttpProblem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  readonly errors: ProblemErrors | undefined;
  /** Of the header `Retry-After`. */
  readonly retryAfterSec: number | undefined;

  constructor(
    status: number,
    code: ProblemCode,
    detail: string,
    errors?: ProblemErrors,
    retryAfterSec?: number,
  ) {
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

export function invalidField(path: string, message: string): HttpProblem {
  return invalidRequest(`${path}: ${message}`, [{ path, message }]);
}

export function notSupported(what: string, reason: string): HttpProblem {
  return new HttpProblem(501, "not-supported", `${what} is not supported by this hub: ${reason}`);
}

/** Parses a query or body; faults become a 400 that names each field. */
export function parsed<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  if (holdsNul(input)) throw invalidRequest("a text holds a NUL character, which cannot be stored");
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.slice(0, 20).map((issue) => ({
    path: issue.path.map(String).join("."),
    message: issue.message,
  }));
  throw invalidRequest(errors.map((error) => `${error.path || "body"}: ${error.message}`).join("; "), errors);
}

function holdsNul(input: unknown): boolean {
  if (typeof input === "string") return input.includes("\0");
  if (typeof input !== "object" || input === null) return false;
  return Object.entries(input).some(([name, value]) => name.includes("\0") || holdsNul(value));
}

export function sendProblem(reply: FastifyReply, thrown: HttpProblem): FastifyReply {
  const body: Problem = {
    type: "about:blank",
    code: thrown.code,
    title: TITLES[thrown.status] ?? "Error",
    status: thrown.status,
    detail: thrown.message,
    ...(thrown.errors === undefined ? {} : { errors: thrown.errors }),
  };
  if (thrown.status === 401) void reply.header("www-authenticate", "Bearer");
  if (thrown.retryAfterSec !== undefined) void reply.header("retry-after", thrown.retryAfterSec);
  return reply.code(thrown.status).type("application/problem+json").send(JSON.stringify(body));
}

/** Errors of Fastify itself (malformed JSON, limits, media types) become problems; anything else is a defect: logged, 500. */
export function installProblems(app: FastifyInstance, log: Logger): void {
  app.addHook("onRequest", async (request) => {
    if (request.url.includes("%00")) throw invalidRequest("the URL holds a NUL character");
  });
  app.setErrorHandler((thrown: FastifyError | HttpProblem, request, reply) => {
    if (thrown instanceof HttpProblem) return sendProblem(reply, thrown);
    const status = thrown.statusCode ?? 500;
    if (status >= 400 && status < 500)
      return sendProblem(reply, new HttpProblem(status, fastifyCode(status), thrown.message));
    log.error({ err: thrown, method: request.method, url: request.url.split("?")[0] }, "request failed");
    return sendProblem(
      reply,
      new HttpProblem(500, "internal", "the hub failed to answer; its log says why. Try again later."),
    );
  });
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      reply,
      new HttpProblem(404, "not-found", `no ${request.method} ${request.url.split("?")[0]}`),
    ),
  );
}

function fastifyCode(status: number): ProblemCode {
  if (status === 413) return "too-large";
  if (status === 415) return "unsupported-media-type";
  return "invalid-request";
}
