/**
 * First contact with a drop, folder by folder. Until one listing of the drop was complete, the ledger knows
 * which folders were listed in full: a file that an interrupted listing did not show was there before, and a
 * file that is added to a listed folder is new.
 */
import { dirname } from "node:path/posix";
import { execute, executeEach, rows, type Steps } from "#core/sql/statements.ts";

/** By folder, whether it was listed in full; the root is "". */
export type ListedFolders = ReadonlyMap<string, boolean>;

export function* listedFolders(drop: string): Steps<ListedFolders> {
  const found = yield* rows<{ folder: string; listed: number }>(
    "SELECT folder, listed FROM drop_folders WHERE drop_name = ?",
    drop,
  );
  return new Map(found.map(({ folder, listed }) => [folder, listed === 1]));
}

/**
 * Whether a file at this path was at the drop before. A folder that its listed parent did not contain is new,
 * with everything in it.
 */
export function wasThere(known: ListedFolders, path: string): boolean {
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

/** For use inside a write. `listed`: folders that were listed in full, with their subfolders. */
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

/** For use inside a write: the whole drop was listed, so every later file is new. */
export function forgetFolders(drop: string): Steps<void> {
  return execute("DELETE FROM drop_folders WHERE drop_name = ?", drop);
}
