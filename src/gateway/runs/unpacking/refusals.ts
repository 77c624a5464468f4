/** The errors of containers and entries that are not unpacked. */
import { HeadgateError, RejectedError, systemCode, TransientError, wordsOf } from "#core/errors.ts";

const OPERATION = "unpack container";

/** The bytes are not what the name says, or contradict the container's own directory. */
export function damaged(why: string, cause?: unknown): RejectedError {
  return refused("HG-PACK-001", `the container cannot be unpacked: ${why}`, cause);
}

export function beyondLimit(why: string): RejectedError {
  return refused("HG-PACK-002", `the container is not unpacked: ${why}`);
}

export function misnamed(why: string): RejectedError {
  return refused("HG-PACK-003", `the container is not unpacked: ${why}`);
}

export function unreadableEntry(why: string): RejectedError {
  return refused("HG-PACK-004", why);
}

export function changedContainer(path: string): RejectedError {
  return refused("HG-PACK-006", `the spool lost the container ${path}, and it is no longer at the drop as it was`);
}

function refused(code: RejectedError["code"], message: string, cause?: unknown): RejectedError {
  return new RejectedError(code, { operation: OPERATION, subject: "container", message, cause });
}

/**
 * Converts an error of reading a container: a fault of the disk is transient, a fault of the bytes is not.
 */
export function unpackFault(thrown: unknown): HeadgateError {
  if (thrown instanceof HeadgateError) return thrown;
  const code = systemCode(thrown);
  if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code))
    return new TransientError("HG-PACK-007", { operation: OPERATION, subject: "container", cause: thrown });
  return damaged(wordsOf(thrown), thrown);
}
