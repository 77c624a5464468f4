/** How much lies in a folder of the spool. */
import type { Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { PACK_MAX } from "../segment/layout.ts";
import { systemCode } from "../support/errors.ts";

/** What an intake remembers of its senders is there for good, and is no backlog. */
const DATABASE = /\.sqlite(-wal|-shm)?$/;
const FILES_AT_ONCE = 64;

/** Of the files that have holes, and of those a disk may keep in less than a block. */
const HOLED_MAX = 2 * PACK_MAX;
const HOLED_MIN = 64 * 1024;
const BLOCK_BYTES = 512;

/**
 * Bytes of a file that this one of its names stands for: a pack, which several runs have names of, counts once in all. Of a run that was taken out of one
 * (`own-segments.ts`) the holes do not count. `blocks`: of 512 bytes; some file systems tell of none until later.
 */
export function shareOf({ size, nlink, blocks }: Pick<Stats, "size" | "nlink" | "blocks">): number {
  const mayHaveHoles = size >= HOLED_MIN && size <= HOLED_MAX && blocks > 0;
  return (mayHaveHoles ? Math.min(size, blocks * BLOCK_BYTES) : size) / Math.max(1, nlink);
}

/** Of files that come and go meanwhile, those that are seen; `onFile` hears of each, of one that has more names of its share. */
export async function bytesBelow(
  folder: string,
  onFile: (name: string, bytes: number) => void,
): Promise<number> {
  let bytes = 0;
  let asked: { readonly name: string; readonly share: Promise<number> }[] = [];
  const add = async () => {
    for (const { name, share } of asked) {
      bytes += await share;
      onFile(name, await share);
    }
    asked = [];
  };
  try {
    for await (const item of await opendir(folder, { recursive: true })) {
      if (item.isFile() && !DATABASE.test(item.name))
        asked.push({ name: item.name, share: shareAt(join(item.parentPath, item.name)) });
      if (asked.length >= FILES_AT_ONCE) await add();
    }
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
  }
  await add();
  return Math.round(bytes);
}

async function shareAt(path: string): Promise<number> {
  try {
    return shareOf(await lstat(path));
  } catch (thrown) {
    if (isGone(thrown)) return 0;
    throw thrown;
  }
}

function isGone(thrown: unknown): boolean {
  return systemCode(thrown) === "ENOENT";
}
