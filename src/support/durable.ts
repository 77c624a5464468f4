/** Files that survive a power cut: temporary name, fsync, rename, fsync of the directory. */
import { constants } from "node:fs";
import { copyFile, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "./errors.ts";

/** Makes the names in a directory durable. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0));
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes a whole file so that a crash leaves the old content or the new, never a part. */
export async function writeDurably(path: string, bytes: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.part`;
  const handle = await open(temporary, "w");
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await publishDurably(temporary, path);
}

/** Gives a file that is already synced its final name. */
export async function publishDurably(temporary: string, path: string): Promise<void> {
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/**
 * Moves a file without ever removing the source before the copy is complete: a rename on one volume, otherwise copy, fsync, rename, remove.
 * The destination must not exist; its directory is made.
 */
export async function moveDurably(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  try {
    await rename(from, to);
  } catch (thrown) {
    if (systemCode(thrown) !== "EXDEV") throw thrown;
    const temporary = `${to}.part`;
    await copyFile(from, temporary);
    await syncFile(temporary);
    await rename(temporary, to);
    await syncDirectory(dirname(to));
    await rm(from);
  }
  await syncDirectory(dirname(to));
  if (dirname(from) !== dirname(to)) await syncDirectory(dirname(from));
}
