/** Checks whether a migration is being undone, before anything else is done with it. */

import { takeOwnerLock } from "../../ledger/sqlite/lock.ts";
import { ConfigError } from "../../support/errors.ts";
import { migrationLedger } from "../request.ts";
import { archiveUndo, runningUndo } from "./record.ts";

/** Throws `ConfigError` while an undo has begun and not ended. */
export async function assertNotUndone(id: string, folder: string): Promise<void> {
  const undone = await runningUndo(folder);
  if (undone === null) return;
  if (undone.endedAt !== null) return await settleUndo(folder);
  throw new ConfigError("HG-MIGR-011", {
    operation: "migrate",
    subject: id,
    message: `${undone.by} began to undo this migration at ${undone.begunAt}, and it has not finished`,
    hint: `\`headgate migrate undo ${id}\` resumes it; then the same command migrates again.`,
  });
}

/**
 * Archives the files of an ended undo, also after a crash. Throws `ConfigError` while another process has the ledger.
 */
export async function settleUndo(folder: string): Promise<void> {
  const undone = await runningUndo(folder);
  if (undone === null || undone.endedAt === null) return;
  const lock = takeOwnerLock(migrationLedger(folder).path);
  try {
    await archiveUndo(folder, undone);
  } finally {
    lock.release();
  }
}
