/**
 * Modes of the files that hold state (ledgers, queues, spools, keys): only the user of the process may read them,
 * whatever the umask.
 */
import { chmodSync, closeSync, lstatSync, openSync, readdirSync, type Stats, statSync } from "node:fs";
import { chmod, mkdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ConfigError, systemCode } from "./errors.ts";
import { folderOnDisk, type PathOnDisk } from "./file-names.ts";
import type { Logger } from "./log.ts";

export const PRIVATE_FILE = 0o600;
export const PRIVATE_FOLDER = 0o700;
const OTHERS = 0o077;
const PERMISSIONS = 0o777;

/** For a process that writes state: SQLite, worker threads and child processes inherit this mask. */
export function keepNewFilesPrivate(): void {
  process.umask(OTHERS);
}

/** Creates the file when it is missing. SQLite gives its log files the mode of the database. */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, "a", PRIVATE_FILE));
}

/**
 * A file or folder with the files that programs keep beside it: `x.sqlite`, `x.sqlite-wal`, `x.sqlite.lock`, ….
 * Another folder beside it, such as a drop `spool-in`, does not belong to the state.
 */
export function filesOf(path: string): string[] {
  const name = basename(path);
  const isBeside = (one: string) => one.startsWith(`${name}-`) || one.startsWith(`${name}.`);
  try {
    return readdirSync(dirname(path), { withFileTypes: true })
      .filter((one) => one.name === name || (one.isFile() && isBeside(one.name)))
      .map((one) => join(dirname(path), one.name));
  } catch (thrown) {
    // Missing, or unreadable for this user: opening the file reports that.
    if (systemCode(thrown) !== undefined) return [path];
    throw thrown;
  }
}

/**
 * Removes the permissions of other users from files and folders, recursively; missing paths are skipped. Below a
 * folder that was private nothing is examined: no other user reaches it. Returns the changed paths. Throws
 * `ConfigError` where a change is refused.
 */
export function narrowModes(paths: readonly string[]): readonly string[] {
  return paths.flatMap((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || !isWide(found)) return [];
    narrow(path, path, found);
    return [path];
  });
}

export function logNarrowed(paths: readonly string[], log: Logger): void {
  if (paths.length > 0)
    log.warn({ paths }, "files of the state could be read by other users; their modes were narrowed");
}

function narrow(path: string, root: string, found: Stats): void {
  if (found.isDirectory()) {
    for (const name of readdirSync(path)) {
      const inner = join(path, name);
      const one = lstatSync(inner, { throwIfNoEntry: false });
      if (one?.isDirectory() === true || one?.isFile() === true) narrow(inner, root, one);
    }
  }
  if (!isWide(found)) return;
  try {
    chmodSync(path, found.mode & PERMISSIONS & ~OTHERS);
  } catch (cause) {
    throw refusal(path, root, cause);
  }
  // Some file systems (FAT, network shares) accept the call and keep the mode.
  if (isWide(statSync(path))) throw refusal(path, root);
}

function isWide({ mode }: Stats): boolean {
  return (mode & OTHERS) !== 0;
}

function refusal(path: string, root: string, cause?: unknown): ConfigError {
  const isOtherOwner = systemCode(cause) === "EPERM";
  return new ConfigError("HG-CONF-005", {
    operation: "protect state",
    subject: root,
    message: isOtherOwner
      ? `other users can read ${path}, and it belongs to another user, who alone may change that`
      : `other users can read ${path}, and its mode cannot be changed`,
    hint: isOtherOwner
      ? `Run as root: chown -R ${process.getuid?.() ?? "USER"} '${root}' && chmod -R go-rwx '${root}'`
      : `Run: chmod -R go-rwx '${root}'. Where the file system has no modes, mount it with umask=077.`,
    cause,
  });
}

/**
 * Creates a folder that other users can read as far as they can read its parent: archives at drops belong to them,
 * too. Throws as `mkdir` does.
 */
export async function makeFolderAsAround(path: PathOnDisk): Promise<void> {
  await mkdir(path);
  await chmod(path, (await stat(folderOnDisk(path))).mode & PERMISSIONS);
}
