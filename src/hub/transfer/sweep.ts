/** Removes what has been in the folder of an account for too long. */
import type { Stats } from "node:fs";
import { lstat, readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isTaken } from "./folder-entry.ts";
import type { TransferOptions } from "./options.ts";

export interface Swept {
  /** Of unfinished uploads. */
  readonly bytes: number;
  /** Folders and unfinished uploads. */
  readonly entries: number;
  readonly taken: number;
}

interface SweepParts {
  readonly options: TransferOptions;
  readonly isOpen: (file: string) => boolean;
  readonly nowMs: number;
}

/** Beyond the limit, a tenth more goes, so that not every further file needs a sweep. */
const KEPT_SHARE = 0.9;

export async function sweepFolder(root: string, { options, isOpen, nowMs }: SweepParts): Promise<Swept> {
  const taken: { file: string; ms: number }[] = [];
  let [bytes, entries] = [0, 0];
  // The time of the last change of a file's facts, which senders cannot set.
  const isOld = ({ ctimeMs }: Stats, keptMs: number) => nowMs - ctimeMs > keptMs;
  const visit = async (folder: string): Promise<void> => {
    for (const name of await readdir(folder)) {
      const file = join(folder, name);
      const status = await lstat(file).catch(() => null); // It may have been removed meanwhile.
      if (status === null) continue;
      if (status.isDirectory()) {
        await visit(file);
        // Only an empty folder is removed.
        if (isOld(status, options.keepFolders) && (await removed(() => rmdir(file)))) continue;
        entries += 1;
      } else if (isTaken(status)) {
        if (isOld(status, options.keepListed)) await removed(() => rm(file));
        else taken.push({ file, ms: status.ctimeMs });
      } else if (isOld(status, options.keepUnfinished) && !isOpen(file)) {
        await removed(() => rm(file));
      } else {
        entries += 1;
        bytes += status.size;
      }
    }
  };
  await visit(root);
  if (taken.length > options.listed) {
    const surplus = taken.length - Math.floor(options.listed * KEPT_SHARE);
    const oldest = taken.sort((one, other) => one.ms - other.ms).splice(0, surplus);
    for (const { file } of oldest) await removed(() => rm(file));
  }
  return { bytes, entries, taken: taken.length };
}

async function removed(remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove();
    return true;
  } catch {
    return false; // It is in use again, or gone; the next sweep sees it.
  }
}
