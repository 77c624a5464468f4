/** Errors that every kind of drop throws with the same text. */

import { ConfigError, RejectedError, TransientError } from "#core/errors.ts";
import type { FileEntry } from "../model.ts";

export function changedWhileFetched(drop: string, entry: FileEntry, how: string): TransientError {
  return new TransientError("HG-DROP-008", {
    operation: "fetch file",
    subject: `${drop}: ${entry.path}`,
    message: `${entry.path} in drop ${drop} changed while it was fetched: ${how}`,
  });
}

export function vanished(drop: string, path: string): RejectedError {
  return new RejectedError("HG-DROP-006", {
    operation: "fetch file",
    subject: `${drop}: ${path}`,
    message: `${path} is no longer at drop ${drop}`,
    ...blankHint(path),
  });
}

/** Refuses a file before a byte is fetched. Sizes in bytes. */
export function refuseTooLarge(drop: string, entry: FileEntry, sizeMax: number): void {
  if (entry.size <= sizeMax) return;
  throw new RejectedError("HG-DROP-010", {
    operation: "fetch file",
    subject: `${drop}: ${entry.path}`,
    message: `${entry.path} has ${entry.size} bytes; drop ${drop} allows ${sizeMax}`,
  });
}

/** `words`: the server's text for a folder that it has shown only in part. */
export function cutShort(drop: string, folder: string, words: string): ConfigError {
  return new ConfigError("HG-DROP-017", {
    operation: "list drop",
    subject: drop,
    message:
      `the server of drop ${drop} shows only a part of the folder ${folder}: ` +
      `${words.replaceAll(/\s+/g, " ").trim()}`,
  });
}

export function interrupted(drop: string, operation: string, cause?: unknown): TransientError {
  return new TransientError("HG-DROP-012", { operation, subject: drop, cause });
}

/** Servers, and clients of FTP, cut a blank at the begin or the end of a name, and then find no such file. */
export function blankHint(path: string): { readonly hint?: string } {
  if (!path.split("/").some((part) => part !== part.trim())) return {};
  return {
    hint:
      `The path ${JSON.stringify(path)} has a blank before or after a name, which many servers cut off: have it ` +
      "renamed there. Otherwise give the gateway's user the right to read it.",
  };
}

/** For an operation that the server or the folder does not permit with one file. */
export function notPermitted(drop: string, operation: string, path: string, cause: unknown): RejectedError {
  return new RejectedError("HG-DROP-007", {
    operation,
    subject: `${drop}: ${path}`,
    message: `${operation}: not permitted for ${path} in drop ${drop}`,
    ...blankHint(path),
    cause,
  });
}

/** Ends a wait at once when one of the signals is aborted; the work itself may continue. */
export async function unlessAborted<T>(
  drop: string,
  operation: string,
  // Several signals, since the result of `AbortSignal.any` is only freed by a full garbage collection.
  signals: readonly AbortSignal[],
  work: Promise<T>,
): Promise<T> {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted !== undefined) {
    work.catch(() => undefined); // No caller waits for it any longer.
    throw interrupted(drop, operation, aborted.reason);
  }
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (event: Event) =>
    reject(interrupted(drop, operation, event.target instanceof AbortSignal ? event.target.reason : undefined));
  for (const signal of signals) signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    for (const signal of signals) signal.removeEventListener("abort", stop);
  }
}
