/** Walks a local folder. Symbolic links are counted and not followed. */
import { type BigIntStats, type Dir, type Dirent, lstat } from "node:fs";
import { lstat as lstatOnce, opendir } from "node:fs/promises";
import { isMissing } from "#core/errors.ts";
import { bytesOf, localPath, type NameEncoding, nameOf, type PathOnDisk } from "#core/file-names.ts";
import type { FileEntry } from "../../model.ts";
import type { OnFolder } from "../drop.ts";
import type { ListingFilter } from "../paths.ts";
import { type FileStatuses, NO_FILE } from "./disk-work.ts";
import type { SomeNames } from "./names-work.ts";
import { areSame, type ListedPart, type RememberedParts } from "./remembered.ts";

/** Entries that are read in one call. */
const READ_AT_ONCE = 512;
/**
 * The thread of the drop reads the names of a folder with at least so many entries, and their status: for fewer, a
 * message to it costs more than it saves.
 */
const LIST_MIN = 64;

export interface LocalTree {
  /** Full path without symbolic links. */
  readonly root: string;
  readonly names: NameEncoding;
  readonly filter: ListingFilter;
  /** Ends a wait that was cancelled, and converts errors to those of the drop. */
  readonly guard: <T>(work: Promise<T>) => Promise<T>;
  readonly onLink: () => void;
  /** The names in a folder with this full path, in parts; no part when the thread did not read it. */
  readonly someNames: (folder: PathOnDisk) => AsyncIterable<SomeNames>;
  /** Of paths that are separated by a zero character; null when they were not read. */
  readonly statuses: (paths: string) => Promise<FileStatuses | null>;
  /** Absent for a listing that is not repeated. */
  readonly remembered?: RememberedParts;
  /** Counts the entries that are read, including ignored ones. */
  readonly tally?: { entries: number; folders: number };
  /** Called for each folder after all of its files were returned. */
  readonly onListed?: OnFolder | undefined;
}

/**
 * The files in a folder and its subfolders, in groups; a folder that vanishes meanwhile is empty. `from` is
 * relative to the root.
 */
export async function* listTree(tree: LocalTree, from: string): AsyncGenerator<readonly FileEntry[]> {
  const folders = [from];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (tree.tally !== undefined) tree.tally.folders += 1;
    const directory = await openFolder(tree, folder);
    if (directory === null) continue;
    const below: string[] = [];
    try {
      let at = 0;
      for await (const names of namesIn(tree, directory, folder)) {
        const entered = noteFolders(tree, names, folder);
        folders.push(...entered);
        if (tree.onListed !== undefined) below.push(...entered);
        const known = tree.remembered?.find(folder, at, names.files);
        const part = known ?? partOf(tree, names.files, folder);
        // One guarded wait for the whole group: a guard for each entry would cost more than reading it.
        await tree.guard(readEntries(tree, part));
        if (part !== known && part.paths.length >= LIST_MIN) tree.remembered?.keep(folder, at, part);
        if (part.entries.length > 0) yield part.entries;
        at += 1;
      }
      tree.remembered?.folderRead(folder, at);
    } finally {
      await closeFolder(tree, directory);
    }
    tree.onListed?.(folder, below);
  }
}

/** Null for a path that is not a file, or vanished. `full` is its whole path, `path` the one in the drop. */
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

async function openFolder(tree: LocalTree, folder: string): Promise<Dir | null> {
  // Names are read as bytes: as text, names that are not UTF-8 would not lead to their files. The types only
  // provide text.
  const means = { bufferSize: LIST_MIN, encoding: "buffer" as BufferEncoding };
  const opening = opendir(localPath(tree.root, folder, tree.names), means).catch((thrown: unknown) => {
    if (folder !== "" && isMissing(thrown)) return null; // The folder vanished during the listing.
    throw thrown;
  });
  return tree.guard(opening).catch((thrown: unknown) => {
    // The wait was cancelled during the opening, so the folder is closed here.
    void opening.then((late) => late?.close()).catch(() => undefined);
    throw thrown;
  });
}

/** A hung share must not block a cancelled walk: the folder is closed when the share responds again. */
async function closeFolder(tree: LocalTree, directory: Dir): Promise<void> {
  const closing = directory.close();
  closing.catch(() => undefined);
  await tree.guard(closing);
}

/** The names in a folder, in groups. A large one is read by the thread from its beginning. */
async function* namesIn(tree: LocalTree, directory: Dir, folder: string): AsyncGenerator<Omit<SomeNames, "ended">> {
  let items = await tree.guard(readItems(directory, LIST_MIN));
  if (items.length === LIST_MIN) {
    let isRead = false;
    for await (const some of tree.someNames(localPath(tree.root, folder, tree.names))) {
      isRead = true;
      yield some;
    }
    if (isRead) return;
  }
  for (let most = LIST_MIN, more = true; more; most = READ_AT_ONCE) {
    yield namesOf(items, tree.names);
    more = items.length === most;
    if (more) items = await tree.guard(readItems(directory, READ_AT_ONCE));
  }
}

function partsOf(joined: string): readonly string[] {
  return joined === "" ? [] : joined.split("\0");
}

function namesOf(items: readonly Dirent[], encoding: NameEncoding): Omit<SomeNames, "ended"> {
  const namesOfKind = (isKind: (item: Dirent) => boolean) =>
    items
      .filter(isKind)
      .map((item) => nameOf(Buffer.from(item.name), encoding))
      .join("\0");
  return {
    files: namesOfKind((item) => item.isFile()),
    folders: namesOfKind((item) => item.isDirectory()),
    linksCount: items.filter((item) => item.isSymbolicLink()).length,
    count: items.length,
  };
}

/** Returns the paths of the folders that belong to the drop. */
function noteFolders(tree: LocalTree, { folders, linksCount, count }: Omit<SomeNames, "ended">, folder: string) {
  if (tree.tally !== undefined) tree.tally.entries += count;
  for (let nth = 0; nth < linksCount; nth += 1) tree.onLink();
  return pathsOf(folders, folder).filter((path) => tree.filter.entersFolder(path));
}

function pathsOf(names: string, folder: string): readonly string[] {
  const parts = partsOf(names);
  return folder === "" ? parts : parts.map((name) => `${folder}/${name}`);
}

/** The files that belong to the drop, before their statuses are read. */
function partOf(tree: LocalTree, names: string, folder: string): ListedPart {
  const paths = pathsOf(names, folder).filter((path) => tree.filter.takesFile(path));
  const isText = (path: string) => typeof bytesOf(path, tree.names) === "string";
  const usual = paths.every(isText) ? paths : paths.filter(isText);
  const others = usual === paths ? [] : paths.filter((path) => !isText(path));
  return { names, paths: usual, asked: usual.join("\0"), others, statuses: null, entries: [] };
}

// The next two functions use callbacks: for 100,000 files, a promise for each would dominate the cost of the
// listing.

/** Fewer than `most` at the end of the folder. */
function readItems(directory: Dir, most: number): Promise<readonly Dirent[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Dirent[]>();
  const items: Dirent[] = [];
  const next = () => {
    try {
      directory.read((error, item) => {
        if (error !== null) return reject(error);
        if (item !== null) items.push(item);
        if (item === null || items.length === most) resolve(items);
        else next();
      });
    } catch (thrown) {
      reject(thrown); // The folder was closed after the wait was cancelled.
    }
  };
  next();
  return promise;
}

/**
 * The entries of a part, in any order, without those that vanished or are not files. They stay the same object while
 * all statuses stay the same.
 */
async function readEntries(tree: LocalTree, part: ListedPart): Promise<void> {
  const { paths, others } = part;
  const statuses = paths.length < LIST_MIN ? null : await tree.statuses(part.asked);
  if (statuses !== null && part.statuses !== null && areSame(statuses, part.statuses)) return;
  part.statuses = null;
  if (statuses === null) {
    part.entries = await readEach(tree, [...paths, ...others]);
    return;
  }
  const entries: FileEntry[] = [];
  const unread = [...others];
  for (const [at, path] of paths.entries()) {
    const size = statuses.sizes[at] ?? Number.NaN;
    if (Number.isNaN(size)) unread.push(path);
    else if (size !== NO_FILE) entries.push({ path, size, mtime: String(statuses.times[at]) });
  }
  part.entries = unread.length === 0 ? entries : entries.concat(await readEach(tree, unread));
  if (unread.length === 0) part.statuses = statuses;
}

/** Reports the error of a status that cannot be read. */
function readEach({ root, names }: LocalTree, paths: readonly string[]): Promise<readonly FileEntry[]> {
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
