/**
 * The work of the thread for the folder of stored bytes. Small contents are written into it: all are written and
 * synced, and then each folder once. Or they are copied out of it, one after another into one file. Each thread loads
 * this module, so it imports next to nothing.
 */
import { hash } from "node:crypto";
import {
  closeSync,
  constants,
  fsync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { isDone, type TaskFacts, triedOnce } from "#core/threads/disk-work.ts";
import type { CopiedContent } from "./blobs.ts";

const FOLDER = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0);
const NEW = { flag: "wx", mode: PRIVATE_FILE } as const;

export interface Placed {
  readonly bytes: Uint8Array;
  /** Where it is written first. */
  readonly temporary: string;
  readonly file: string;
}

export type FolderOrder =
  | { readonly kind: "place"; readonly list: readonly Placed[] }
  | { readonly kind: "copy"; readonly files: readonly string[]; readonly destination: string };

/** For a placed content whether it is durable at its place; null for one that was not copied. */
export type FolderAnswer = readonly (boolean | CopiedContent | null)[];

type Facts = Pick<TaskFacts<null>, "isAwaited" | "isWanted">;

export function performInFolder(order: FolderOrder, facts: Facts): FolderAnswer | Promise<FolderAnswer> {
  return order.kind === "place" ? placeAll(order.list, facts) : copyAll(order.files, order.destination, facts);
}

/** Syncs that run at the same time share the commits of the disk's journal. */
async function placeAll(list: readonly Placed[], { isAwaited }: Facts): Promise<boolean[]> {
  if (!isAwaited()) return list.map(() => false);
  const written = await Promise.all(list.map(write));
  if (!isAwaited()) return list.map(() => false);
  const made = new Set<string>();
  const placed = list.map(
    ({ temporary, file }, at) =>
      written[at] === true &&
      isDone(() => {
        const folder = dirname(file);
        if (mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER }) !== undefined) made.add(dirname(folder));
        renameSync(temporary, file);
      }),
  );
  const folders = [...new Set([...made, ...list.filter((_, at) => placed[at]).map(({ file }) => dirname(file))])];
  const synced = await Promise.all(folders.map((folder) => syncOpened(folder, FOLDER)));
  const failed = new Set(folders.filter((_, at) => synced[at] !== true));
  const isSynced = (folder: string) =>
    !failed.has(folder) && !(failed.has(dirname(folder)) && made.has(dirname(folder)));
  return list.map(({ file }, at) => placed[at] === true && isSynced(dirname(file)));
}

async function write({ bytes, temporary }: Placed): Promise<boolean> {
  return isDone(() => writeFileSync(temporary, bytes, NEW)) && (await syncOpened(temporary, constants.O_RDONLY));
}

/** Whether it was synced. */
function syncOpened(path: string, flags: number): Promise<boolean> {
  const file = triedOnce(() => openSync(path, flags));
  if (file === null) return Promise.resolve(false);
  return new Promise((resolve) => fsync(file, (fault) => resolve(isDone(() => closeSync(file)) && fault === null)));
}

function copyAll(files: readonly string[], destination: string, { isWanted }: Facts): (CopiedContent | null)[] {
  const contents = files.map((file) => (isWanted() ? triedOnce(() => readFileSync(file)) : null));
  let offset = 0;
  const copies = contents.map((content): CopiedContent | null => {
    if (content === null) return null;
    const copy = { offset, bytes: content.length, sha256: hash("sha256", content, "hex") };
    offset += content.length;
    return copy;
  });
  writeFileSync(destination, Buffer.concat(contents.filter((content) => content !== null)), { flag: "wx" });
  if (isWanted()) return copies;
  // The caller that gave up has tried to remove the copy already, maybe before it existed.
  unlinkSync(destination);
  return files.map(() => null);
}
