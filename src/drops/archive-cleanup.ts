/** Deletes archived files after their time. Only files that carry the id of a run in their name, which tells when they were taken up. */
import { posix } from "node:path";
import type { End, FileEntry, FinishRule } from "../model.ts";
import { runIdTimeMs } from "../support/run-id.ts";
import type { ListingFilter } from "./paths.ts";

/** For the listing of an archive: everything. */
export const EVERYTHING: ListingFilter = { takesFile: () => true, entersFolder: () => true };

const TAGGED = /\.([0-7][0-9a-hjkmnp-tv-z]{25})(?:\.[^.]*)?$/;

/** The id of the run of an archived file; null for a name that is not of our making. */
export function archivedRun(path: string): string | null {
  return TAGGED.exec(posix.basename(path))?.[1] ?? null;
}

/** Unix milliseconds at which the run of an archived file began; null for a name that is not of our making. */
export function archivedSinceMs(path: string): number | null {
  const id = archivedRun(path);
  return id === null ? null : runIdTimeMs(id);
}

/** The rules for the ends of a file, without the other settings beside them. */
export function finishRules(finish: FinishRules): readonly FinishRule[] {
  const { delivered, quarantined, unmatched, duplicate } = finish;
  return [delivered, quarantined, unmatched, duplicate];
}

type FinishRules = Readonly<Record<End, FinishRule>>;

/** Folders of archives, each once. */
export function archiveFolders(finish: FinishRules): readonly string[] {
  const folders = finishRules(finish).flatMap((rule) => (rule.action === "archive" ? [rule.to] : []));
  return [...new Set(folders)];
}

/** Archive folders whose files are deleted after a time, in milliseconds. Of two rules for one folder the longer counts, and for ever is longest. */
export function keptArchives(finish: FinishRules): ReadonlyMap<string, number> {
  const kept = new Map<string, number>();
  for (const rule of finishRules(finish)) {
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
