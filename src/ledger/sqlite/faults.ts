/** What SQLite's result codes mean for the caller. */
import { type ConfigError, TransientError, wordsOf } from "../../support/errors.ts";
import { startFault } from "../../support/start-fault.ts";

/** The primary result code, or undefined when it is no error of SQLite. */
export function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number")
    return undefined;
  return thrown.errcode & 0xff;
}

/** PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN: the disk or the machine, not the statement. */
const PASSING: ReadonlySet<number> = new Set([3, 5, 6, 7, 8, 9, 10, 13, 14]);

export function isPassing(thrown: unknown): boolean {
  if (thrown instanceof TransientError) return true;
  const code = sqliteCode(thrown);
  return code !== undefined && PASSING.has(code);
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

/** `TransientError` when the disk is at fault, and may do soon. */
export function openFault(path: string, cause: unknown): ConfigError | TransientError {
  return startFault("HG-LEDG-002", {
    operation: "open ledger",
    subject: path,
    message: `the ledger ${path} cannot be opened: ${wordsOf(cause)}`,
    cause,
  });
}
