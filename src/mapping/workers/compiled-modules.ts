/**
 * Node's cache of compiled modules, lent to mapping hosts: they start in half the time. A mapper that could
 * write there could change the gateway's own code. It is not enough to give up the permission, since the
 * runtime itself continues to write compiled modules there, for any module that a mapper claims to have
 * loaded. So each thread knows the folder only by a link of its own, and removes that link before it loads a
 * mapper.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { flushCompileCache, getCompileCacheDir } from "node:module";
import { dirname, isAbsolute, join, relative } from "node:path";

const WRITE = "fs.write";

/**
 * Makes links to the folder of the cache, one for each thread; none when no cache is in use or can be lent, or when
 * mappers may write there anyway.
 */
export function lendCaches(writable: readonly string[] | null, count: number): readonly string[] {
  const used = getCompileCacheDir();
  if (used === undefined || writable === null) return [];
  // The runtime adds a folder for its version.
  const folder = dirname(used);
  const places = [folder, resolved(folder)];
  // A permission within another cannot be given up.
  if (writable.some((one) => places.some((place) => isWithin(place, one) || isWithin(one, place)))) return [];
  const links = Array.from({ length: count }, () => join(folder, "lent", randomBytes(8).toString("hex")));
  try {
    mkdirSync(join(folder, "lent"), { recursive: true });
    for (const link of links) symlinkSync(folder, link, "junction");
    return links;
  } catch {
    // A full or read-only disk: the host starts more slowly.
    for (const link of links) endLoan(link);
    return [];
  }
}

/** In the thread that it was lent to: keeps the modules that were compiled by now, and gives the cache back. */
export function returnCache(link: string): void {
  flushCompileCache();
  endLoan(link);
}

/** In each thread of the process: its mappers must not write in the folder of the links. */
export function dropLinks(folder: string): void {
  process.permission.drop(WRITE, folder);
  if (process.permission.has(WRITE, folder)) throw new Error(`mappers could write in ${folder}`);
}

/** Nothing when it has ended already. A folder stands there when the cache was cleared meanwhile. */
export function endLoan(link: string): void {
  rmSync(link, { recursive: true, force: true });
}

/** The folder that a path leads to; the path itself while it leads nowhere. */
export function resolved(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    // It may be made later; under this name.
    return folder;
  }
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return !(way.startsWith("..") || isAbsolute(way));
}
