/**
 * What Node keeps of compiled modules, lent to the processes of mappers: they start in half the time. Whoever could write there could
 * change the gateway's own code. To give up the permission is not enough, since the runtime itself goes on writing there what it
 * compiled, for whatever module a mapper says it loaded. So a process knows the folder by a link of its own only, and takes that link
 * away before it loads any mapper.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { flushCompileCache, getCompileCacheDir } from "node:module";
import { dirname, isAbsolute, join, relative } from "node:path";

const WRITE = "fs.write";

/** The path of a new link to the folder; null when none is in use or can be lent, or when mappers may write there anyway. */
export function lendCache(writable: readonly string[] | null): string | null {
  const used = getCompileCacheDir();
  if (used === undefined || writable === null) return null;
  // The runtime adds a folder for its version.
  const folder = dirname(used);
  const places = [folder, resolved(folder)];
  // A permission within another cannot be given up.
  if (writable.some((one) => places.some((place) => isWithin(place, one) || isWithin(one, place))))
    return null;
  const link = join(folder, "lent", randomBytes(8).toString("hex"));
  try {
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(folder, link, "junction");
    return link;
  } catch {
    // A full disk, or one to read only: it starts more slowly.
    return null;
  }
}

/** In the process that it was lent to: keeps what was compiled by now, and gives the cache back. */
export function returnCache(link: string): void {
  delete process.env["NODE_COMPILE_CACHE"];
  flushCompileCache();
  endLoan(link);
  const links = dirname(link);
  process.permission.drop(WRITE, links);
  if (process.permission.has(WRITE, links)) throw new Error(`mappers could write in ${links}`);
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
