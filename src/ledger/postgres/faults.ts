/** What PostgreSQL's SQLSTATEs and the errors of its connections mean for the caller. */
import { DatabaseError } from "pg";
import { ConfigError, HeadgateError, systemCode, TransientError, wordsOf } from "../../support/errors.ts";

/** Connection exceptions, resources, operator intervention, and a server that may be read only: the server, not the statement. */
const PASSING_CLASSES: ReadonlySet<string> = new Set(["08", "53", "57", "58", "25006", "XX"]);
/** Two transactions stood in each other's way; done again, they pass. */
const AGAIN: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);
/** Wrong password or role, no such database, no right to it, no such schema. */
const CONFIGURED: ReadonlySet<string> = new Set(["28000", "28P01", "3D000", "42501", "3F000"]);

function stateOf(thrown: unknown): string | undefined {
  return thrown instanceof DatabaseError ? thrown.code : undefined;
}

/** Another node has the run or the drop. */
const TAKEN = "HG001";
/** The session of this node has ended. */
const ENDED = "HG002";

/** The fence has closed for all that this node does. */
export function isSessionEnded(thrown: unknown): boolean {
  return stateOf(thrown) === ENDED;
}

export function isUniqueViolation(thrown: unknown): boolean {
  return stateOf(thrown) === "23505";
}

export function leaseLost(subject: string, words: string, cause?: unknown): TransientError {
  return new TransientError("HG-LEDG-010", { operation: "hold lease", subject, message: words, cause });
}

export function isAgain(thrown: unknown): boolean {
  return AGAIN.has(stateOf(thrown) ?? "");
}

/** The connection is gone, and what it was asked for last may have been done. */
export function isLost(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || thrown instanceof HeadgateError) return false;
  const state = stateOf(thrown);
  if (state !== undefined) return state.startsWith("08") || /^57P0[1-5]$/.test(state) || state === "25P03";
  return systemCode(thrown) !== undefined || /connection|timeout|not queryable|closed/i.test(thrown.message);
}

/** The error as the caller is to see it; what is about the statement alone stays as it is. */
export function faultOf(operation: string, subject: string, thrown: unknown): unknown {
  if (thrown instanceof HeadgateError) return thrown;
  const state = stateOf(thrown);
  if (state === TAKEN || state === ENDED) return leaseLost(subject, wordsOf(thrown), thrown);
  if (state !== undefined && CONFIGURED.has(state)) return openFault(subject, thrown);
  const passing =
    isLost(thrown) ||
    isAgain(thrown) ||
    (state !== undefined && (PASSING_CLASSES.has(state) || PASSING_CLASSES.has(state.slice(0, 2))));
  if (!passing) return thrown;
  return new TransientError(isLost(thrown) ? "HG-LEDG-008" : "HG-LEDG-004", {
    operation,
    subject,
    message: `the ledger ${subject} cannot be used now: ${wordsOf(thrown)}`,
    cause: thrown,
  });
}

export function openFault(subject: string, cause: unknown): ConfigError {
  return new ConfigError("HG-LEDG-002", {
    operation: "open ledger",
    subject,
    message: `the ledger ${subject} cannot be opened: ${wordsOf(cause)}`,
    hint: "Check user, password, database and schema in `ledger`; the user needs the right to make the schema, or to use it.",
    cause,
  });
}
