/** What a migration has to look at before anything else: whether it is being undone. */

import { takeOwnerLock } from "../../ledger/sqlite/lock.ts";
import { migrationLedger } from "../../migration/request.ts";
import { putAside, undoUnderWay } from "../../migration/undo-record.ts";
import { ConfigError } from "../../support/errors.ts";

/** Before anything else is done with a migration. `ConfigError` while an undoing has begun and not ended. */
export async function assertNotUndone(id: string, folder: string): Promise<void> {
  const undone = await undoUnderWay(folder);
  if (undone === null) return;
  if (undone.endedAt !== null) return await settleUndo(folder);
  throw new ConfigError("HG-MIGR-011", {
    operation: "migrate",
    subject: id,
    message: `${undone.by} began to undo this migration at ${undone.begunAt}, and that has not ended`,
    hint: `\`headgate migrate undo ${id}\` goes on with it; then the same command migrates again.`,
  });
}

/** Puts aside what an undo has ended with, also after a crash. `ConfigError` while somebody else has the ledger. */
export async function settleUndo(folder: string): Promise<void> {
  const undone = await undoUnderWay(folder);
  if (undone === null || undone.endedAt === null) return;
  const lock = takeOwnerLock(migrationLedger(folder).path);
  try {
    await putAside(folder, undone);
  } finally {
    lock.release();
  }
}
