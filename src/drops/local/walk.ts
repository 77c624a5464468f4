/** Walks a local folder as it lies there now. Symbolic links are counted and not followed. */
import { type BigIntStats, type Dir, type Dirent, lstat } from "node:fs";
import { lstat as lstatOnce, opendir } from "node:fs/promises";
import type { FileEntry } from "../../model.ts";
import { systemCode } from "../../support/errors.ts";
import { localPath, type NameEncoding, nameOf } from "../../support/file-names.ts";
import type { OnFolder } from "../drop.ts";
import type { ListingFilter } from "../paths.ts";

/** Entries that are read, and whose status is then asked for at the same time. */
const READ_AT_ONCE = 128;

export interface LocalTree {
  /** Full path without symbolic links. */
  readonly root: string;
  readonly names: NameEncoding;
  readonly filter: ListingFilter;
  /** Ends a wait when nobody wants it any more, and says in the drop's words what went wrong. */
  readonly guard: <T>(work: Promise<T>) => Promise<T>;
  readonly onLink: () => void;
  /** Counts what is read, also what the filter does not take. */
  readonly tally?: { entries: number; folders: number };
  /** Told of each folder when all of it was handed out. */
  readonly onListed?: OnFolder | undefined;
}

/** The files in a folder and in those below it, in groups; a folder that goes meanwhile holds none. `from` is relative to the root. */
export async function* listTree(tree: LocalTree, from: string): AsyncGenerator<readonly FileEntry[]> {
  const folders = [from];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (tree.tally !== undefined) tree.tally.folders += 1;
    const directory = await openFolder(tree, folder);
    if (directory === null) continue;
    const below: string[] = [];
    try {
      for (let ended = false; !ended; ) {
        // One wait for the whole group: to guard each entry by itself would cost more than reading it.
        const read = await tree.guard(readGroup(tree, directory, folder));
        folders.push(...read.folders);
        if (tree.onListed !== undefined) below.push(...read.folders);
        ended = read.ended;
        if (read.files.length > 0) yield read.files;
      }
    } finally {
      await closeFolder(tree, directory);
    }
    tree.onListed?.(folder, below);
  }
}

/** Null when it is no file, or gone. `full` is its whole path, `path` the one in the drop. */
export async function readEntry(full: string | Buffer, path: string): Promise<FileEntry | null> {
  try {
    const status = await lstatOnce(full, { bigint: true });
    return status.isFile() ? entryOf(path, status) : null;
  } catch (thrown) {
    if (isMissing(thrown)) return null;
    throw thrown;
  }
}

export function entryOf(path: string, status: BigIntStats): FileEntry {
  return { path, size: Number(status.size), mtime: String(status.mtimeNs) };
}

export function isMissing(thrown: unknown): boolean {
  return systemCode(thrown) === "ENOENT" || systemCode(thrown) === "ENOTDIR";
}

async function openFolder(tree: LocalTree, folder: string): Promise<Dir | null> {
  // Names are read as bytes: as text, those that are no UTF-8 would lead nowhere. The types know of texts alone.
  const means = { bufferSize: READ_AT_ONCE, encoding: "buffer" as BufferEncoding };
  const opening = opendir(localPath(tree.root, folder, tree.names), means).catch((thrown: unknown) => {
    if (folder !== "" && isMissing(thrown)) return null; // It went while we listed.
    throw thrown;
  });
  return tree.guard(opening).catch((thrown: unknown) => {
    // Given up while it was being opened: nobody else will close it.
    void opening.then((late) => late?.close()).catch(() => undefined);
    throw thrown;
  });
}

/** A hung share must not hold up who has given up: then it is closed when the share comes to. */
async function closeFolder(tree: LocalTree, directory: Dir): Promise<void> {
  const closing = directory.close();
  closing.catch(() => undefined);
  await tree.guard(closing);
}

interface Group {
  readonly files: readonly FileEntry[];
  readonly folders: readonly string[];
  readonly ended: boolean;
}

async function readGroup(tree: LocalTree, directory: Dir, folder: string): Promise<Group> {
  const items = await readItems(directory);
  if (tree.tally !== undefined) tree.tally.entries += items.length;
  const folders: string[] = [];
  const paths: string[] = [];
  for (const item of items) {
    const name = nameOf(Buffer.from(item.name), tree.names);
    const path = folder === "" ? name : `${folder}/${name}`;
    if (takes(tree, item, path, folders)) paths.push(path);
  }
  return { files: await readEntries(tree, paths), folders, ended: items.length < READ_AT_ONCE };
}

// These two use callbacks: of 100,000 files, promises for each would be most of what the listing costs.

/** Fewer at the end of the folder. */
function readItems(directory: Dir): Promise<readonly Dirent[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Dirent[]>();
  const items: Dirent[] = [];
  const next = () => {
    try {
      directory.read((error, item) => {
        if (error !== null) return reject(error);
        if (item !== null) items.push(item);
        if (item === null || items.length === READ_AT_ONCE) resolve(items);
        else next();
      });
    } catch (thrown) {
      reject(thrown); // It was closed, since nobody waits any more.
    }
  };
  next();
  return promise;
}

/** In any order, without those that are gone or no files. */
function readEntries({ root, names }: LocalTree, paths: readonly string[]): Promise<readonly FileEntry[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly FileEntry[]>();
  const entries: FileEntry[] = [];
  let open = paths.length;
  if (open === 0) resolve(entries);
  for (const path of paths)
    lstat(localPath(root, path, names), { bigint: true }, (error, status) => {
      if (error !== null && !isMissing(error)) return reject(error);
      if (error === null && status.isFile()) entries.push(entryOf(path, status));
      open -= 1;
      if (open === 0) resolve(entries);
    });
  return promise;
}

function takes(tree: LocalTree, item: Dirent, path: string, folders: string[]): boolean {
  if (item.isDirectory()) {
    if (tree.filter.entersFolder(path)) folders.push(path);
  } else if (item.isSymbolicLink()) tree.onLink();
  return item.isFile() && tree.filter.takesFile(path);
}
