/**
 * First contact with a drop, folder by folder. Until one listing of the drop was complete, the ledger knows which folders were listed in full:
 * what a listing that broke off did not show lay there before, and what comes to a folder that was listed is new.
 */
import { dirname } from "node:path/posix";
import { execute, executeEach, rows, type Steps } from "./store.ts";

/** By folder, whether it was listed in full; the root is "". */
export type ListedFolders = ReadonlyMap<string, boolean>;

export function* listedFolders(drop: string): Steps<ListedFolders> {
  const found = yield* rows<{ folder: string; listed: number }>(
    "SELECT folder, listed FROM drop_folders WHERE drop_name = ?",
    drop,
  );
  return new Map(found.map(({ folder, listed }) => [folder, listed === 1]));
}

/** Whether a file at this path belongs to what lay at the drop before. A folder that its listed parent did not hold is new, with all in it. */
export function layBefore(known: ListedFolders, path: string): boolean {
  for (let folder = folderOf(path); ; folder = folderOf(folder)) {
    const listed = known.get(folder);
    if (listed !== undefined) return !listed;
    if (folder === "") return true;
  }
}

/** "" for the root. */
export function folderOf(path: string): string {
  const folder = dirname(path);
  return folder === "." ? "" : folder;
}

/** Inside a write. `listed`: folders that were listed in full, with those in them. */
export function* noteFolders(drop: string, listed: ReadonlyMap<string, readonly string[]>): Steps<void> {
  yield* executeEach(
    `INSERT INTO drop_folders (drop_name, folder, listed) VALUES (?, ?, 1)
      ON CONFLICT (drop_name, folder) DO UPDATE SET listed = 1`,
    ["text", "text"],
    [...listed.keys()].map((folder) => [drop, folder]),
  );
  yield* executeEach(
    "INSERT INTO drop_folders (drop_name, folder, listed) VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
    ["text", "text"],
    [...listed.values()].flat().map((folder) => [drop, folder]),
  );
}

/** Inside a write: the whole drop was listed, so that nothing more is history. */
export function forgetFolders(drop: string): Steps<void> {
  return execute("DELETE FROM drop_folders WHERE drop_name = ?", drop);
}
