/** Converts SQLite's result codes to errors of the ledger. */

import { type ConfigError, TransientError, wordsOf } from "#core/errors.ts";
import { isSqliteTrouble } from "#core/sql/sqlite/faults.ts";
import { startFault } from "#core/start-fault.ts";

export function isPassing(thrown: unknown): boolean {
  return thrown instanceof TransientError || isSqliteTrouble(thrown);
}

export function writeFault(path: string, cause: unknown): TransientError {
  return passingFault("write ledger", path, `the ledger ${path} cannot be written now`, cause);
}

export function readFault(cause: unknown): TransientError {
  return passingFault("read ledger", "ledger", "the ledger cannot be read now", cause);
}

function passingFault(operation: string, subject: string, words: string, cause: unknown): TransientError {
  if (cause instanceof TransientError) return cause;
  return new TransientError("HG-LEDG-004", {
    operation,
    subject,
    message: `${words}: ${wordsOf(cause)}`,
    cause,
  });
}

/** `TransientError` when the disk is at fault, since the next attempt may succeed. */
export function openFault(path: string, cause: unknown): ConfigError | TransientError {
  return startFault("HG-LEDG-002", {
    operation: "open ledger",
    subject: path,
    message: `the ledger ${path} cannot be opened: ${wordsOf(cause)}`,
    cause,
  });
}
