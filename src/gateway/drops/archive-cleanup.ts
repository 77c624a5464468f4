/**
 * Deletes archived files after their time. Only files with the id of a run in their name are deleted; the id
 * contains the time of pickup.
 */
import { posix } from "node:path";
import { runIdTimeMs } from "#core/run-id.ts";
import type { End, FileEntry, FinishRule } from "../model.ts";
import type { ListingFilter } from "./paths.ts";

/** A filter that takes everything, for the listing of an archive. */
export const EVERYTHING: ListingFilter = { takesFile: () => true, entersFolder: () => true };

const TAGGED = /\.([0-7][0-9a-hjkmnp-tv-z]{25}(?:[0-9a-hjkmnp-tv-z]{7})*)(?:\.[^.]*)?$/;

/** The id of the run of an archived file; null for a name that Headgate did not give. */
export function archivedRun(path: string): string | null {
  return TAGGED.exec(posix.basename(path))?.[1] ?? null;
}

/**
 * Unix milliseconds at which the run of an archived file began; null for a name that Headgate did not give.
 */
export function archivedSinceMs(path: string): number | null {
  const id = archivedRun(path);
  return id === null ? null : runIdTimeMs(id);
}

/** The rules for the ends of a file, without the other settings of `finish`. */
function finishRules(finish: FinishRules): readonly FinishRule[] {
  const { delivered, quarantined, unmatched, duplicate } = finish;
  return [delivered, quarantined, unmatched, duplicate];
}

type FinishRules = Readonly<Record<End, FinishRule>>;

/** Folders of archives, each once. */
export function archiveFolders(finish: FinishRules): readonly string[] {
  const folders = finishRules(finish).flatMap((rule) => (rule.action === "archive" ? [rule.to] : []));
  return [...new Set(folders)];
}

/**
 * Archive folders whose files are deleted after a time, in milliseconds. Of two rules for one folder the
 * longer time counts, and no limit is the longest.
 */
export function keptArchives(finish: FinishRules): ReadonlyMap<string, number> {
  const kept = new Map<string, number>();
  for (const rule of finishRules(finish)) {
    if (rule.action !== "archive") continue;
    kept.set(rule.to, Math.max(kept.get(rule.to) ?? 0, rule.keep ?? Number.POSITIVE_INFINITY));
  }
  return new Map([...kept].filter(([, keepMs]) => Number.isFinite(keepMs)));
}

/** The first old files of an archive are removed, up to the limit. */
export interface ArchiveClearing {
  readonly folder: string;
  readonly isOld: (path: string) => boolean;
  readonly limit: number;
}

export async function oldest(
  groups: AsyncIterable<readonly FileEntry[]>,
  { isOld, limit }: ArchiveClearing,
): Promise<string[]> {
  const old: string[] = [];
  for await (const files of groups) for (const { path } of files) if (old.length < limit && isOld(path)) old.push(path);
  return old;
}
