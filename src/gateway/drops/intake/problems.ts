/** Errors of the intake as problem details; the response itself is in `wire/http-problem.ts`. */
import type { FastifyInstance } from "fastify";
import { isOutOfSpace, TransientError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { HttpProblem, installProblemHandlers } from "#wire/http-problem.ts";

const RETRY_AFTER_SECONDS = 30;

/** Value of `WWW-Authenticate`. */
const CHALLENGE = 'Bearer, Basic realm="headgate"';

/** The intake accepts no bodies now; the sender may try again. */
export function unavailable(code: "storage-full" | "backlog-full" | "unavailable", detail: string): HttpProblem {
  return new HttpProblem(503, code, detail, undefined, RETRY_AFTER_SECONDS);
}

export function installProblems(app: FastifyInstance, log: Logger): void {
  installProblemHandlers(app, {
    challenge: CHALLENGE,
    faultOf(thrown, place) {
      log.error({ err: thrown, ...place }, "the intake failed");
      return faultOf(thrown);
    },
    known: () =>
      ": this intake accepts POST /api/data, /api/standard, /api/generic/{guid}, /storage and /connect/token",
  });
}

function faultOf(thrown: unknown): HttpProblem {
  if (isOutOfSpace(thrown))
    return unavailable("storage-full", "the disk of the gateway is full; send this again later");
  if (thrown instanceof TransientError)
    return unavailable("unavailable", "the storage of the gateway cannot be reached now; send this again later");
  return new HttpProblem(
    500,
    "internal",
    "the gateway could not accept this; its log has the reason. Send it again later",
  );
}
