/** Opens the file of an upload in the folder of an account: most are new, and cost one call. */
import { constants, type Stats } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { systemCode } from "#core/errors.ts";
import { noSuchFile, type OpenMode, TreeFault } from "./file-tree.ts";
import { isTaken, OWNER, rethrow, statusOf, UNFINISHED } from "./folder-entry.ts";
import type { FolderUsage } from "./folder-usage.ts";

export interface OpenedFile {
  readonly handle: FileHandle;
  readonly size: number;
  /** Milliseconds of the epoch; null: it is new. */
  readonly modifiedMs: number | null;
}

const FOUND = constants.O_RDWR | constants.O_NOFOLLOW;
const NEW = FOUND | constants.O_CREAT | constants.O_EXCL;
/** Whether the process takes permissions of their owner from new files. */
const IS_MASKED = (process.umask() & OWNER) !== 0;

export async function openForUpload(file: string, mode: OpenMode, usage: FolderUsage): Promise<OpenedFile> {
  if (mode.create && !usage.isFull) {
    const opened = await openNew(file, usage);
    if (opened !== null) return opened;
  }
  const found = await statusOf(file);
  if (found === null && !mode.create) throw noSuchFile();
  if (found?.isDirectory() === true) throw new TreeFault("failed", "is a folder");
  if (found !== null && mode.exclusive) throw new TreeFault("exists", "there is a file of this name");
  if (found !== null && isTaken(found) && !mode.truncate)
    throw new TreeFault("denied", "the file was taken already; send it as a whole, or under another name");
  if (found !== null && !mode.truncate)
    return { handle: await openUnfinished(file, FOUND), size: found.size, modifiedMs: found.mtimeMs };
  if (found !== null) await removeFile(file, found, usage);
  const opened = await openNew(file, usage);
  if (opened === null) throw new TreeFault("failed", "another file got this name");
  return opened;
}

export async function removeFile(file: string, found: Stats, usage: FolderUsage): Promise<void> {
  await rm(file).catch(rethrow);
  usage.forget(found);
}

/** Null when there is a file or a folder of this name. */
async function openNew(file: string, usage: FolderUsage): Promise<OpenedFile | null> {
  usage.enter();
  try {
    const handle = await (IS_MASKED ? openUnfinished(file, NEW) : open(file, NEW, UNFINISHED));
    return { handle, size: 0, modifiedMs: null };
  } catch (thrown) {
    usage.leave();
    if (systemCode(thrown) === "EEXIST") return null;
    return rethrow(thrown);
  }
}

async function openUnfinished(file: string, flags: number): Promise<FileHandle> {
  const handle = await open(file, flags, UNFINISHED).catch(rethrow);
  try {
    await handle.chmod(UNFINISHED);
    return handle;
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}
