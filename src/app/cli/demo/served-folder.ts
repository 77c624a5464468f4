/**
 * A folder as the file server of a site shows it: its files are listed, read, written, moved and removed. Links are not
 * followed, so that nothing outside the folder is reached.
 */
import { constants, type Stats } from "node:fs";
import { link, lstat, mkdir, open, readdir, realpath, rename, rm, rmdir, utimes } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import {
  type Download,
  type Entry,
  type FileTree,
  noSuchFile,
  type OpenMode,
  TreeFault,
  toFault,
  type Upload,
} from "#hub/transfer/file-tree.ts";
import { OpenUpload } from "#hub/transfer/open-upload.ts";

/** `root` exists. */
export async function servedFolder(root: string): Promise<FileTree> {
  const real = await realpath(root);
  const tree: FileTree = {
    stat: async (path) => entryOf(basename(path) || "/", await statusOf(await placeOf(real, path))),
    list: async (path) => entriesOf(await placeOf(real, path)),
    write: async (path, mode) => write(await placeOf(real, path), mode),
    read: async (path) => read(await placeOf(real, path)),
    rename: async (from, to) => move(await placeOf(real, from), await placeOf(real, to)),
    remove: async (path) => rm(await placeOf(real, path)),
    makeFolder: async (path) => mkdir(await placeOf(real, path)),
    removeFolder: async (path) => rmdir(await placeOf(real, path)),
    setModified: async (path, ms) => utimes(await placeOf(real, path), ms / 1_000, ms / 1_000),
    async truncate(path, size) {
      await using handle = await open(await placeOf(real, path), constants.O_WRONLY | constants.O_NOFOLLOW);
      await handle.truncate(size);
    },
  };
  return withFaults(tree);
}

function withFaults(tree: FileTree): FileTree {
  const guarded =
    <Args extends readonly unknown[], T>(call: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      try {
        return await call(...args);
      } catch (thrown) {
        throw thrown instanceof TreeFault ? thrown : toFault(thrown);
      }
    };
  const { stat, list, write, read, rename, remove, makeFolder, removeFolder, setModified, truncate } = tree;
  return {
    stat: guarded(stat),
    list: guarded(list),
    write: guarded(write),
    read: guarded(read),
    rename: guarded(rename),
    remove: guarded(remove),
    makeFolder: guarded(makeFolder),
    removeFolder: guarded(removeFolder),
    setModified: guarded(setModified),
    truncate: guarded(truncate),
  };
}

/** The path on the disk; the folder in which it is has to be within the root. */
async function placeOf(root: string, path: string): Promise<string> {
  if (path === "/") return root;
  const place = join(root, path);
  const folder = await realpath(dirname(place));
  if (folder === root || folder.startsWith(root + sep)) return place;
  throw new TreeFault("denied", "it is outside of the served folder");
}

async function statusOf(place: string): Promise<Stats> {
  const status = await lstat(place);
  if (!status.isFile() && !status.isDirectory() && !status.isSymbolicLink()) throw noSuchFile();
  return status;
}

function entryOf(name: string, status: Stats): Entry {
  const kind = status.isDirectory() ? "folder" : status.isSymbolicLink() ? "link" : "file";
  return { name, kind, size: kind === "file" ? status.size : 0, modifiedMs: status.mtimeMs };
}

async function entriesOf(folder: string): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const name of (await readdir(folder)).sort()) {
    // It may have been removed meanwhile, or be a device.
    const status = await statusOf(join(folder, name)).catch(() => null);
    if (status !== null) entries.push(entryOf(name, status));
  }
  return entries;
}

async function read(place: string): Promise<Download> {
  const handle = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const status = await handle.stat();
  if (!status.isFile()) {
    await handle.close();
    throw new TreeFault("failed", "is no file");
  }
  return {
    size: status.size,
    async read(position, length) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    },
    close: () => handle.close(),
  };
}

async function write(place: string, { truncate, create, exclusive }: OpenMode): Promise<Upload> {
  const flags =
    (create ? constants.O_CREAT : 0) | (exclusive ? constants.O_EXCL : 0) | (truncate ? constants.O_TRUNC : 0);
  const handle = await open(place, constants.O_RDWR | constants.O_NOFOLLOW | flags, 0o600);
  const { size } = await handle.stat();
  const nothing = () => undefined;
  return new OpenUpload({
    handle,
    size,
    modifiedMs: null,
    grow: nothing,
    shrink: nothing,
    finish: () => handle.close(),
  });
}

/** Nothing is replaced, as with OpenSSH's server. */
async function move(from: string, to: string): Promise<void> {
  if ((await statusOf(from)).isDirectory()) return await rename(from, to);
  await link(from, to);
  await rm(from);
}
