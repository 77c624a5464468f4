/** A pack gets its names. The spool's thread loads it too, so it imports next to nothing. */
import { closeSync, fsyncSync, linkSync, openSync, statSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { isDone, syncNamesNow } from "../support/disk-work.ts";
import { faultPoint } from "../support/faults.ts";
import { ABOUT, type PackPart, ROWS } from "./layout.ts";

/** Syncs it, and gives it a name for each of its runs beside the one that it has. Answers for each whether it was done. */
export function publishPackNow({ part, paths }: PackPart): boolean[] {
  if (!isDone(() => syncNow(part))) return paths.map(() => false);
  const named = paths.map((path) => isDone(() => giveName(part, path)));
  // All of them lie in one, where it is a spool.
  const synced = new Map<string, boolean>();
  return paths.map((path, at) => {
    const sync = (folder: string) => isDone(() => syncNamesNow(folder));
    return named[at] === true && synced.getOrInsertComputed(dirname(path), sync);
  });
}

function giveName(part: string, path: string): void {
  // What another attempt, or another version of the gateway, left there or beside would be taken for what it holds.
  for (const old of [path, `${path}${ROWS}`, `${path}${ABOUT}`])
    if (statSync(old, { throwIfNoEntry: false }) !== undefined) unlinkSync(old);
  linkSync(part, path);
  faultPoint("spool.list.named");
}

function syncNow(path: string): void {
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
