/** Checks of a single path of a local drop. */
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { isMissing, unlessMissing } from "#core/errors.ts";
import { localPath, type NameEncoding, type PathOnDisk } from "#core/file-names.ts";

export async function isFolder(path: PathOnDisk): Promise<boolean> {
  return (await unlessMissing(lstat(path), null))?.isDirectory() === true;
}

/** Device and inode, which distinguish a file from another one of its name; null when it has vanished. */
export async function identityOf(path: PathOnDisk): Promise<string | null> {
  const status = await unlessMissing(lstat(path, { bigint: true }), null);
  return status === null ? null : `${status.dev}:${status.ino}`;
}

/** The full path of a file when its folder is really inside the root; null when there is no such folder. */
export async function resolveInside(
  root: string,
  path: string,
  names: NameEncoding,
): Promise<PathOnDisk | "outside" | null> {
  const full = localPath(root, path, names);
  if (!path.includes("/")) return full;
  try {
    if (typeof full === "string") {
      const folder = await realpath(dirname(full));
      return folder === root || folder.startsWith(root + sep) ? join(folder, basename(full)) : "outside";
    }
    const at = full.lastIndexOf(sep);
    const folder = await realpath(full.subarray(0, at), { encoding: "buffer" });
    const isInside = Buffer.concat([folder, Buffer.from(sep)]).indexOf(root + sep) === 0;
    return isInside ? Buffer.concat([folder, full.subarray(at)]) : "outside";
  } catch (thrown) {
    if (isMissing(thrown)) return null;
    throw thrown;
  }
}
