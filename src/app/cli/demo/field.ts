/** The file servers of the demo's sites: the hub's SFTP and FTP servers, over a plain folder for each user. */

import { constants, type Stats } from "node:fs";
import { link, lstat, mkdir, open, readdir, realpath, rename, rm, rmdir, utimes } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import ssh2 from "ssh2";
import { systemClock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { fingerprintOf } from "#gateway/drops/sftp/known-hosts.ts";
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
import { transferOptions } from "#hub/transfer/options.ts";
import { startServers } from "#hub/transfer/servers.ts";
import type { SignIn } from "#hub/transfer/sign-in.ts";

export interface FieldUser {
  readonly username: string;
  readonly password: string;
  readonly folder: string;
}

export interface Field {
  readonly sftpPort: number;
  readonly ftpPort: number;
  readonly hostKeyFingerprint: string;
  close(): Promise<void>;
}

/** On free ports of loopback. `hostKey`: the text of a private key. */
export async function startField(users: readonly FieldUser[], hostKey: string, log: Logger): Promise<Field> {
  const listen = "127.0.0.1:0";
  const options = transferOptions.parse({ sftp: { listen }, ftp: { listen } });
  const signIn = await signInOf(users);
  const servers = await startServers(options, { signIn, hostKeys: [hostKey], log, clock: systemClock });
  const { sftp, ftp } = servers.addresses;
  return {
    sftpPort: portOf(sftp),
    ftpPort: portOf(ftp),
    hostKeyFingerprint: fingerprintOfKey(hostKey),
    close: () => servers.close(),
  };
}

export function portOf(address: string | null): number {
  return Number((address ?? "").split(":").at(-1));
}

export function fingerprintOfKey(privateKey: string): string {
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) throw key;
  return fingerprintOf(key.getPublicSSH());
}

async function signInOf(users: readonly FieldUser[]): Promise<SignIn> {
  const trees = new Map<string, FileTree>();
  for (const { username, folder } of users) trees.set(username, await servedFolder(folder));
  return {
    async byPassword(username, password) {
      const tree = trees.get(username);
      const isRight = users.some((user) => user.username === username && user.password === password);
      if (tree === undefined || !isRight) return { kind: "refused" };
      return { kind: "user", user: { username, accounts: [1], treeFor: () => tree } };
    },
    byKey: async () => ({ kind: "refused" }),
  };
}

// A folder as the file server of a site shows it: its files are listed, read, written, moved and removed. Links are not
// followed, so that nothing outside the folder is reached.

/** `root` exists. */
async function servedFolder(root: string): Promise<FileTree> {
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
