/** A file of a sender's folder is unfinished, closed or taken, as the permissions of its owner show. */
import { fchmodSync, ftruncateSync, futimesSync, type Stats } from "node:fs";
import { type FileHandle, lstat } from "node:fs/promises";
import { systemCode } from "#core/errors.ts";
import { type Entry, TreeFault, toFault } from "./file-tree.ts";

/** Being written, or broken off. */
export const UNFINISHED = 0o600;
/** Closed without error under a temporary name, or empty. */
const CLOSED = 0o700;
const TAKEN = 0o400;
export const OWNER = 0o700;

/** Null when there is none. */
export async function statusOf(file: string): Promise<Stats | null> {
  try {
    return await lstat(file);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(thrown) ?? "")) return null;
    throw toFault(thrown);
  }
}

export function isTaken(status: Stats): boolean {
  return status.isFile() && (status.mode & OWNER) === TAKEN;
}

/** The sender was answered that it is whole: after a power cut it may get its name, and has to have its bytes. */
export async function closeDurably(handle: FileHandle): Promise<void> {
  await handle.sync();
  await handle.chmod(CLOSED);
}

/** A taken file as its sender left it; `id`: of the stored file. */
export interface Taken {
  readonly id: number;
  readonly size: number;
  /** Milliseconds of the epoch; null: just now. */
  readonly modifiedMs: number | null;
}

/** The bytes of larger files are freed outside the event loop. */
const SMALL_BYTES = 64 * 1024;

/** In this order: a file that looks unfinished never lacks its bytes. */
export async function markTaken(handle: FileHandle, { size, modifiedMs }: Taken): Promise<void> {
  const seconds = modifiedMs === null ? null : modifiedMs / 1_000;
  if (size <= SMALL_BYTES) {
    // The event loop would cost a small file more than these calls.
    const { fd } = handle;
    fchmodSync(fd, TAKEN);
    ftruncateSync(fd, 0);
    ftruncateSync(fd, size);
    if (seconds !== null) futimesSync(fd, seconds, seconds);
    return;
  }
  await handle.chmod(TAKEN);
  await handle.truncate(0);
  await handle.truncate(size);
  if (seconds !== null) await handle.utimes(seconds, seconds);
}

export function isClosed(status: Stats): boolean {
  return status.isFile() && (status.mode & OWNER) === CLOSED;
}

export function entryOf(name: string, status: Stats): Entry {
  const kind = status.isDirectory() ? "folder" : "file";
  return { name, kind, size: kind === "file" ? status.size : 0, modifiedMs: status.mtimeMs };
}

export function rethrow(thrown: unknown): never {
  throw toFault(thrown);
}

export function onlySent(_existing: Stats): never {
  throw new TreeFault("denied", "files are only sent here; GET /storage/file gives their content");
}
