/** Checks whether a migration is being undone, before anything else is done with it. */

import { existsSync } from "node:fs";
import { systemClock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { openLedger } from "../../ledger/open.ts";
import { takeOwnerLock } from "../../ledger/sqlite/open.ts";
import { migrationLedger } from "../request.ts";
import { archiveUndo, pastUndos, runningUndo } from "./record.ts";

/** Throws `ConfigError` while an undo has begun and not ended, and when the ledger is a copy from before one. */
export async function assertNotUndone(id: string, folder: string): Promise<void> {
  const undone = await runningUndo(folder);
  if (undone === null) return await assertYounger(id, folder);
  if (undone.endedAt !== null) return await settleUndo(folder);
  throw new ConfigError("HG-MIGR-011", {
    operation: "migrate",
    subject: id,
    message: `${undone.by} began to undo this migration at ${undone.begunAt}, and it has not finished`,
    hint: `\`headgate migrate undo ${id}\` resumes it; then the same command migrates again.`,
  });
}

/** A copy of the ledger from before an undo takes what was removed for delivered. */
async function assertYounger(id: string, folder: string): Promise<void> {
  const undoneAt = (await pastUndos(folder)).at(-1)?.endedAt ?? null;
  const place = migrationLedger(folder);
  if (undoneAt === null || !existsSync(place.path)) return;
  const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
  try {
    const [latest] = await ledger.recentRuns(1);
    if (latest === undefined || latest.createdAt > undoneAt) return;
  } finally {
    await ledger.close();
  }
  throw new ConfigError("HG-MIGR-012", {
    operation: "migrate",
    subject: id,
    message: `${place.path} is a copy from before the undo at ${undoneAt}: it takes what was removed for delivered`,
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
