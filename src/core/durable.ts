/** Files that survive a power cut: temporary name, fsync, rename, fsync of the directory. */
import { type BigIntStats, closeSync, constants, fsync, openSync } from "node:fs";
import { copyFile, link, mkdir, open, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "./errors.ts";
import { extendedOnDisk, folderOnDisk, type PathOnDisk } from "./file-names.ts";

interface DirectorySync {
  running: Promise<void>;
  /** Begins when the running sync has ended, for all callers that came meanwhile. */
  next: Promise<void> | null;
}

const directorySyncs = new Map<string, DirectorySync>();

/** Makes the names in a directory durable. Callers that come while a sync is running share the next one. */
export function syncDirectory(directory: PathOnDisk): Promise<void> {
  const sync = directorySyncs.get(keyOf(directory));
  if (sync === undefined) return beginSync(directory);
  sync.next ??= sync.running.then(
    () => beginSync(directory),
    () => beginSync(directory),
  );
  return sync.next;
}

function beginSync(directory: PathOnDisk): Promise<void> {
  const sync: DirectorySync = { running: syncNames(directory), next: null };
  directorySyncs.set(keyOf(directory), sync);
  const end = () => {
    if (sync.next === null) directorySyncs.delete(keyOf(directory));
  };
  sync.running.then(end, end);
  return sync.running;
}

async function syncNames(directory: PathOnDisk): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0));
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function keyOf(directory: PathOnDisk): string {
  return typeof directory === "string" ? directory : directory.toString("latin1");
}

/** For this machine's own disk: the file is opened synchronously, and only the fsync is awaited. */
export async function syncFile(path: string): Promise<void> {
  const file = openSync(path, "r");
  try {
    await synced(file);
  } finally {
    closeSync(file);
  }
}

function synced(file: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  fsync(file, (fault) => (fault === null ? resolve() : reject(fault)));
  return promise;
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
 * Moves a file without ever removing the source before the copy is complete: a rename on one volume, otherwise copy,
 * fsync, rename, remove. The destination must not exist; its directory is created. Returns the status of the source
 * that was copied, since a copy has times of its own; null after a rename.
 */
export async function moveDurably(from: PathOnDisk, to: PathOnDisk): Promise<BigIntStats | null> {
  const copied = await renamed(from, to).then((done) => (done ? null : copyAcross(from, to)));
  await syncMove(from, to);
  return copied;
}

/**
 * Moves a file within one volume, like `moveDurably`; returns false, with no effect, when the paths are on different
 * volumes.
 */
export async function renameDurably(from: PathOnDisk, to: PathOnDisk): Promise<boolean> {
  if (!(await renamed(from, to))) return false;
  await syncMove(from, to);
  return true;
}

/** Like `renameDurably`, but never replaces another file: false, with no effect, when one is there. */
export async function restoreDurably(from: PathOnDisk, to: PathOnDisk): Promise<boolean> {
  try {
    await link(from, to);
  } catch (thrown) {
    if (systemCode(thrown) === "EEXIST") return false;
    // The file system has no hard links, or the system denies them to users who do not own the file.
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"].includes(systemCode(thrown) ?? ""))
      throw thrown;
    await moveDurably(from, to);
    return true;
  }
  await rm(from);
  await syncMove(from, to);
  return true;
}

async function syncMove(from: PathOnDisk, to: PathOnDisk): Promise<void> {
  const [source, target] = [folderOnDisk(from), folderOnDisk(to)];
  await syncDirectory(target);
  if (keyOf(source) !== keyOf(target)) await syncDirectory(source);
}

/** False when the paths are on different volumes. */
async function renamed(from: PathOnDisk, to: PathOnDisk, isAgain = false): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === "EXDEV") return false;
    if (systemCode(thrown) !== "ENOENT" || isAgain) throw thrown;
    await mkdir(folderOnDisk(to), { recursive: true });
    return renamed(from, to, true);
  }
}

/** For a drop, which may be a share that hangs. */
async function syncCopy(path: PathOnDisk): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function copyAcross(from: PathOnDisk, to: PathOnDisk): Promise<BigIntStats> {
  const temporary = extendedOnDisk(to, ".part");
  const before = await stat(from, { bigint: true });
  try {
    await copyFile(from, temporary);
    // Times are copied as precisely as possible; below a microsecond they cannot.
    await utimes(temporary, Number(before.atimeNs) / 1e9, Number(before.mtimeNs) / 1e9);
    await syncCopy(temporary);
    const after = await stat(from, { bigint: true });
    if (after.mtimeNs !== before.mtimeNs || after.size !== before.size)
      throw new Error(`${from} changed while it was copied`);
    await rename(temporary, to);
  } catch (thrown) {
    await rm(temporary, { force: true }); // A full disk must not be filled further.
    throw thrown;
  }
  await syncDirectory(folderOnDisk(to));
  await rm(from);
  return before;
}
