/** Deletes archived files after their time. Only files that carry the id of a run in their name, which tells when they were taken up. */
import { posix } from "node:path";
import type { End, FileEntry, FinishRule } from "../model.ts";
import { runIdTimeMs } from "../support/run-id.ts";
import type { ListingFilter } from "./paths.ts";

/** For the listing of an archive: everything. */
export const EVERYTHING: ListingFilter = { takesFile: () => true, entersFolder: () => true };

const TAGGED = /\.([0-7][0-9a-hjkmnp-tv-z]{25})(?:\.[^.]*)?$/;

/** Unix milliseconds at which the run of an archived file began; null for a name that is not of our making. */
export function archivedSinceMs(path: string): number | null {
  const id = TAGGED.exec(posix.basename(path))?.[1];
  return id === undefined ? null : runIdTimeMs(id);
}

/** Archive folders whose files are deleted after a time, in milliseconds. Of two rules for one folder the longer counts, and for ever is longest. */
export function keptArchives(finish: Readonly<Record<End, FinishRule>>): ReadonlyMap<string, number> {
  const kept = new Map<string, number>();
  for (const rule of Object.values(finish)) {
    if (rule.action !== "archive") continue;
    kept.set(rule.to, Math.max(kept.get(rule.to) ?? 0, rule.keep ?? Number.POSITIVE_INFINITY));
  }
  return new Map([...kept].filter(([, keepMs]) => Number.isFinite(keepMs)));
}

/** The first files of a listing that are old, up to a number of them. */
export async function oldest(
  groups: AsyncIterable<readonly FileEntry[]>,
  isOld: (path: string) => boolean,
  limit: number,
): Promise<string[]> {
  const old: string[] = [];
  for await (const files of groups)
    for (const { path } of files) if (old.length < limit && isOld(path)) old.push(path);
  return old;
}
