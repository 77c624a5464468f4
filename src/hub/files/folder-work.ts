/**
 * The work of the thread for the folder of stored bytes. Small contents are written into it: all are written and
 * synced, and then each folder once. Or they are copied out of it, one after another into one file. Each thread loads
 * this module, so it imports next to nothing.
 */
import { hash } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { isDone, syncNamesNow, type TaskFacts, triedOnce } from "../../support/disk-work.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../support/private-files.ts";
import type { CopiedContent } from "./blobs.ts";

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

export function performInFolder(order: FolderOrder, facts: Facts): FolderAnswer {
  return order.kind === "place" ? placeAll(order.list, facts) : copyAll(order.files, order.destination, facts);
}

function placeAll(list: readonly Placed[], { isAwaited }: Facts): boolean[] {
  if (!isAwaited()) return list.map(() => false);
  const written = list.map((one) => isDone(() => write(one)));
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
  const folders = new Set([...made, ...list.filter((_, at) => placed[at]).map(({ file }) => dirname(file))]);
  const failed = new Set([...folders].filter((folder) => !isDone(() => syncNamesNow(folder))));
  const isSynced = (folder: string) =>
    !failed.has(folder) && !(failed.has(dirname(folder)) && made.has(dirname(folder)));
  return list.map(({ file }, at) => placed[at] === true && isSynced(dirname(file)));
}

function write({ bytes, temporary }: Placed): void {
  const file = openSync(temporary, "wx", PRIVATE_FILE);
  try {
    writeFileSync(file, bytes);
    fsyncSync(file);
  } finally {
    triedOnce(() => closeSync(file));
  }
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
