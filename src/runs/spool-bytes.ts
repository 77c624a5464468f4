/** How much lies in a folder of the spool. */
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../support/errors.ts";

/** What an intake remembers of its senders is there for good, and is no backlog. */
const DATABASE = /\.sqlite(-wal|-shm)?$/;
const FILES_AT_ONCE = 64;

/** Bytes of a file that this one of its names stands for: a pack, which several runs have names of, counts once in all. */
export function shareOf({ size, nlink }: { readonly size: number; readonly nlink: number }): number {
  return size / Math.max(1, nlink);
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
