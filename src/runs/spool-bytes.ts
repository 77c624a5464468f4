/** How much lies in a folder of the spool. */
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../support/errors.ts";

/** What an intake remembers of its senders is there for good, and is no backlog. */
const DATABASE = /\.sqlite(-wal|-shm)?$/;
const FILES_AT_ONCE = 64;

/** Of files that come and go meanwhile, those that are seen; `onFile` hears of each. */
export async function bytesBelow(
  folder: string,
  onFile: (name: string, bytes: number) => void,
): Promise<number> {
  let bytes = 0;
  let asked: { readonly name: string; readonly size: Promise<number> }[] = [];
  const add = async () => {
    for (const { name, size } of asked) {
      bytes += await size;
      onFile(name, await size);
    }
    asked = [];
  };
  try {
    for await (const item of await opendir(folder, { recursive: true })) {
      if (item.isFile() && !DATABASE.test(item.name))
        asked.push({ name: item.name, size: sizeOf(join(item.parentPath, item.name)) });
      if (asked.length >= FILES_AT_ONCE) await add();
    }
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
  }
  await add();
  return bytes;
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).size;
  } catch (thrown) {
    if (isGone(thrown)) return 0;
    throw thrown;
  }
}

function isGone(thrown: unknown): boolean {
  return systemCode(thrown) === "ENOENT";
}
