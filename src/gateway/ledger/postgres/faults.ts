/** Converts PostgreSQL's SQLSTATEs and the errors of its connections to errors of the ledger. */

import { ConfigError, HeadgateError, TransientError, wordsOf } from "#core/errors.ts";
import { isConflict, isLost, isMisconfigured, isServerTrouble, sqlStateOf } from "#core/sql/postgres/faults.ts";

/** Another node has the run or the drop. */
const TAKEN = "HG001";
/** The session of this node has ended. */
const ENDED = "HG002";

/** The fence is closed for every write of this node. */
export function isSessionEnded(thrown: unknown): boolean {
  return sqlStateOf(thrown) === ENDED;
}

export function leaseLost(subject: string, words: string, cause?: unknown): TransientError {
  return new TransientError("HG-LEDG-010", { operation: "hold lease", subject, message: words, cause });
}

/** Returns the error for the caller; an error that concerns only the statement stays unchanged. */
export function faultOf(operation: string, subject: string, thrown: unknown): unknown {
  if (thrown instanceof HeadgateError) return thrown;
  const state = sqlStateOf(thrown);
  if (state === TAKEN || state === ENDED) return leaseLost(subject, wordsOf(thrown), thrown);
  if (isMisconfigured(thrown)) return openFault(subject, thrown);
  if (!isLost(thrown) && !isConflict(thrown) && !isServerTrouble(thrown)) return thrown;
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
    hint:
      "Check user, password, database and schema in `ledger`; " +
      "the user needs the right to create the schema, or to use it.",
    cause,
  });
}
