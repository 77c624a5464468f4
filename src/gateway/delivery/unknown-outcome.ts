/**
 * Whether an attempt to send a batch may have been stored without a confirmation. The journal keeps this as text in the
 * answer of the batch, so that a person can read it and a process that resumes the batch knows it.
 */

import { HeadgateError, systemCode } from "#core/errors.ts";
import type { Batch } from "../model.ts";
import type { Verdict } from "./retry-table.ts";

/** The answer of a batch from before a call until its response is known. */
export const UNANSWERED = "sent, and not answered so far";
const UNCERTAIN_NOTE = "; an attempt without a clear answer may be stored";

/** No connection was made, so that nothing was sent. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
/** Statuses of a service that has not processed any part of the batch. */
const UNTOUCHED: ReadonlySet<number> = new Set([401, 425, 429]);

export function mayBeStored({ attempts, answer }: Pick<Batch, "attempts" | "answer">): boolean {
  if (attempts === 0) return false;
  return answer === null || answer.startsWith(UNANSWERED) || answer.endsWith(UNCERTAIN_NOTE);
}

export function withUnknownOutcome(words: string, isUncertain: boolean): string {
  return isUncertain ? `${words}${UNCERTAIN_NOTE}` : words;
}

/** A response that does not refuse the batch as a whole leaves its outcome open. */
export function isOpenResponse(verdict: Verdict, status: number): boolean {
  return verdict === "transient" && !UNTOUCHED.has(status);
}

/** An established connection may be lost with the same code: then the system call was a read or write. */
export function isOpenFault(thrown: unknown): boolean {
  // The client's own error, with a code of its own, wraps that of the system.
  const fault = thrown instanceof HeadgateError ? thrown.cause : thrown;
  if (!NOT_CONNECTED.has(systemCode(fault) ?? "")) return true;
  return fault instanceof Error && "syscall" in fault && (fault.syscall === "read" || fault.syscall === "write");
}
