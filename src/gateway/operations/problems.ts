/** Error answers of the operations API: problem details (RFC 9457) with `code`, `operation`, `subject` and `hint`. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  ConfigError,
  type ErrorCode,
  type ErrorFacts,
  HeadgateError,
  InvariantError,
  RejectedError,
  TransientError,
} from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { frameworkWords } from "#wire/framework-words.ts";

interface FieldError {
  /** Such as `options.trigger`. */
  readonly path: string;
  readonly message: string;
}

/** The input of an endpoint does not have its shape. */
export class InvalidInput extends ConfigError {
  readonly errors: readonly FieldError[];

  constructor(message: string, errors: readonly FieldError[]) {
    super("HG-OPS-006", { operation: "read request", subject: "request", message });
    this.errors = errors;
  }
}

/** The part that would answer is not opened yet. */
export class StartingUp extends TransientError {
  constructor() {
    super("HG-OPS-002", { operation: "answer request", subject: "gateway", message: "the gateway is starting" });
  }
}

/** For a handler: nothing of this name is known, answered by 404. */
export function unknownSubject(facts: Pick<ErrorFacts, "operation" | "subject" | "message" | "hint">): RejectedError {
  return new RejectedError("HG-OPS-004", facts);
}

const STATUS_OF_CODE: Partial<Record<ErrorCode, number>> = { "HG-OPS-004": 404, "HG-OPS-005": 413, "HG-OPS-014": 403 };

function statusOf(thrown: HeadgateError): number {
  if (thrown instanceof RejectedError) return STATUS_OF_CODE[thrown.code] ?? 409;
  if (thrown instanceof ConfigError) return 400;
  return thrown instanceof InvariantError ? 500 : 503;
}

const TITLES: Readonly<Record<number, string>> = {
  400: "not valid",
  401: "not allowed",
  403: "not allowed",
  404: "unknown",
  409: "cannot be done",
  413: "too large",
  414: "too long",
  500: "internal error",
  503: "cannot be done now",
};

export function sendProblem(
  reply: FastifyReply,
  status: number,
  facts: { readonly detail: string } & Readonly<Record<string, unknown>>,
): FastifyReply {
  const title = TITLES[status] ?? "cannot be answered";
  return reply
    .code(status)
    .type("application/problem+json")
    .send({ title, status, ...facts });
}

/** A setting of Fastify, which answers unreadable addresses before it has found a route or its hooks. */
export function unroutable(thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  protectAnswer(reply);
  void sendProblem(reply, thrown.statusCode ?? 400, { detail: frameworkWords(thrown, request) });
}

/** No cache keeps an answer, and no browser guesses its type, unless its route has said more. */
function protectAnswer(reply: FastifyReply): void {
  if (!reply.hasHeader("cache-control")) void reply.header("cache-control", "no-store");
  void reply.header("x-content-type-options", "nosniff");
}

/** Also for what Fastify itself refuses: limits, malformed bodies. */
export function installProblems(app: FastifyInstance, log: Logger): void {
  app.addHook("onSend", async (_request, reply) => protectAnswer(reply));
  app.setErrorHandler((thrown: FastifyError | HeadgateError, request, reply) => {
    if (thrown instanceof HeadgateError && !(thrown instanceof InvariantError)) return sendError(reply, thrown);
    const status = "statusCode" in thrown ? (thrown.statusCode ?? 500) : 500;
    if (status < 500) return sendProblem(reply, status, { detail: frameworkWords(thrown as FastifyError, request) });
    log.error({ err: thrown, method: request.method, path: pathOf(request) }, "a request could not be answered");
    return sendProblem(reply, 500, { detail: "the gateway failed to answer; its log has the reason" });
  });
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, 404, { detail: `no ${request.method} ${pathOf(request)}` }),
  );
}

function sendError(reply: FastifyReply, thrown: HeadgateError): FastifyReply {
  const { code, operation, subject, message, hint } = thrown;
  const errors = thrown instanceof InvalidInput && thrown.errors.length > 0 ? { errors: thrown.errors } : {};
  return sendProblem(reply, statusOf(thrown), { code, operation, subject, detail: message, hint, ...errors });
}

function pathOf({ url }: FastifyRequest): string {
  return url.split("?")[0] ?? "";
}
