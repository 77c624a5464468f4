/**
 * Whether an attempt to send a batch may have been stored although nobody said so. It is told by the words that the journal keeps as the
 * answer of the batch, so that a person reads it, and a process that takes the batch over knows it.
 */
import type { Batch } from "../model.ts";
import { HeadgateError, systemCode } from "../support/errors.ts";
import type { Verdict } from "./retry-table.ts";

/** The answer of a batch from before a call until something is known of it. */
export const UNANSWERED = "sent, and not answered so far";
const DOUBT = "; an attempt without a clear answer may be stored";

/** No connection was made, so that nothing was sent. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
/** Answers of a service that looked at nothing of the batch yet. */
const UNTOUCHED: ReadonlySet<number> = new Set([401, 425, 429]);

export function mayBeStored({ attempts, answer }: Pick<Batch, "attempts" | "answer">): boolean {
  if (attempts === 0) return false;
  return answer === null || answer.startsWith(UNANSWERED) || answer.endsWith(DOUBT);
}

export function withUnknownOutcome(words: string, doubtful: boolean): string {
  return doubtful ? `${words}${DOUBT}` : words;
}

/** An answer that is no refusal of the batch as a whole leaves open what became of it. */
export function isOpenAnswer(verdict: Verdict, status: number): boolean {
  return verdict === "transient" && !UNTOUCHED.has(status);
}

/** A connection that was made may be lost with the same code: then the system was reading or writing. */
export function isOpenFault(thrown: unknown): boolean {
  // The client's own error, with a code of its own, stands around that of the system.
  const fault = thrown instanceof HeadgateError ? thrown.cause : thrown;
  if (!NOT_CONNECTED.has(systemCode(fault) ?? "")) return true;
  return (
    fault instanceof Error && "syscall" in fault && (fault.syscall === "read" || fault.syscall === "write")
  );
}
