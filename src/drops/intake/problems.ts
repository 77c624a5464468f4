/** Error answers of the intake: problem details (RFC 9457) in words for a person, shaped as the service's. */
import type { FastifyError, FastifyInstance, FastifyReply } from "fastify";
import { systemCode, TransientError } from "../../support/errors.ts";
import type { Logger } from "../../support/log.ts";
import type { Problem } from "../../wire/index.ts";

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  503: "Service Unavailable",
};
const RETRY_AFTER_SECONDS = 30;

export type ProblemCode =
  | "invalid-request"
  | "invalid-json"
  | "unauthenticated"
  | "missing-scope"
  | "missing-right"
  | "unknown-token"
  | "not-found"
  | "too-large"
  | "too-many-requests"
  | "unsupported-media-type"
  | "unsupported-api-version"
  | "idempotency-conflict"
  | "storage-full"
  | "backlog-full"
  | "unavailable"
  | "internal";

/** An answer that ends a request. */
export class IntakeProblem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  readonly errors: Problem["errors"];
  readonly retryAfterSec: number | undefined;

  constructor(
    status: number,
    code: ProblemCode,
    detail: string,
    errors?: Problem["errors"],
    retryAfterSec?: number,
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.retryAfterSec = retryAfterSec ?? (status === 503 ? RETRY_AFTER_SECONDS : undefined);
  }
}

export function invalid(detail: string): IntakeProblem {
  return new IntakeProblem(400, "invalid-request", detail);
}

export function installProblems(app: FastifyInstance, log: Logger): void {
  app.setErrorHandler((thrown: FastifyError | IntakeProblem, request, reply) => {
    if (thrown instanceof IntakeProblem) return send(reply, thrown);
    const status = thrown.statusCode ?? 500;
    if (status >= 400 && status < 500)
      return send(reply, new IntakeProblem(status, codeOf(status), thrown.message));
    log.error({ err: thrown, method: request.method, url: request.url.split("?")[0] }, "the intake failed");
    return send(reply, faultOf(thrown));
  });
  app.setNotFoundHandler((request, reply) =>
    send(
      reply,
      new IntakeProblem(
        404,
        "not-found",
        `no ${request.method} ${request.url.split("?")[0]}: this intake takes POST /api/data, /api/generic/{guid}, /storage and /connect/token`,
      ),
    ),
  );
}

function faultOf(thrown: unknown): IntakeProblem {
  if (["ENOSPC", "EDQUOT"].includes(systemCode(thrown) ?? ""))
    return new IntakeProblem(503, "storage-full", "the disk of the gateway is full; send this again later");
  if (thrown instanceof TransientError)
    return new IntakeProblem(
      503,
      "unavailable",
      "where the gateway keeps what it takes cannot be reached now; send this again later",
    );
  return new IntakeProblem(
    500,
    "internal",
    "the gateway could not take this; its log says why. Send it again later",
  );
}

function codeOf(status: number): ProblemCode {
  if (status === 413) return "too-large";
  return status === 415 ? "unsupported-media-type" : "invalid-request";
}

function send(reply: FastifyReply, problem: IntakeProblem): FastifyReply {
  const body: Problem = {
    type: "about:blank",
    code: problem.code,
    title: TITLES[problem.status] ?? "Error",
    status: problem.status,
    detail: problem.message,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
  };
  if (problem.status === 401) void reply.header("www-authenticate", 'Bearer, Basic realm="headgate"');
  if (problem.retryAfterSec !== undefined) void reply.header("retry-after", problem.retryAfterSec);
  return reply.code(problem.status).type("application/problem+json").send(JSON.stringify(body));
}
