/**
 * Writes small contents into the folder of stored bytes, in a thread: all are written and synced, and then each folder
 * once. Each thread loads this module, so it imports next to nothing.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isDone, syncNamesNow, type TaskFacts, triedOnce } from "../../support/disk-work.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../support/private-files.ts";

export interface Placed {
  readonly bytes: Uint8Array;
  /** Where it is written first. */
  readonly temporary: string;
  readonly file: string;
}

/** For each content whether it is durable at its place. */
export function placeAll(list: readonly Placed[], { isAwaited }: Pick<TaskFacts<null>, "isAwaited">): boolean[] {
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
