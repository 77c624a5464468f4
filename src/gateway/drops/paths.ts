/** Paths inside a drop: which are permitted, and which of a listing belong to the drop. */
import { posix } from "node:path";
import { ConfigError, RejectedError } from "#core/errors.ts";
import { runIdTimeMs } from "#core/run-id.ts";
import type { End, FileEntry, FinishRule } from "../model.ts";
import type { DropOptions } from "./options.ts";

/** A filter that takes everything, for the listing of an archive. */
export const EVERYTHING: ListingFilter = { takesFile: () => true, entersFolder: () => true };

const TAGGED = /\.([0-7][0-9a-hjkmnp-tv-z]{25}(?:[0-9a-hjkmnp-tv-z]{7})*)(?:\.[^.]*)?$/;

/**
 * Prefix of Headgate's own names at a drop, such as files on their way to be deleted; they are never listed,
 * nor entered.
 */
export const OWN_PREFIX = ".headgate-";

/** True when a listed name can be a single part of a path. */
export function isPlainName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[/\0\r\n]/.test(name);
}

/** Whether the path is a plain relative path below the drop's root. */
export function isInside(path: string): boolean {
  return path.split("/").every(isPlainName);
}

/** The path itself, or `RejectedError` when it is not a plain relative path below the drop's root. */
export function insideDrop(drop: string, path: string): string {
  if (isInside(path)) return path;
  throw new RejectedError("HG-DROP-005", {
    operation: "resolve path",
    subject: drop,
    message: `the path ${JSON.stringify(path)} leads out of the drop ${drop}, or is not a path`,
  });
}

/** The folders from the first one below the root to this one; none for the root, which is `.`. */
export function foldersOf(folder: string): readonly string[] {
  const parts = folder === "." ? [] : folder.split("/");
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
}

/** The filter of a listing: the drop's patterns, without its archive folders and Headgate's own names. */
export interface ListingFilter {
  takesFile(path: string): boolean;
  entersFolder(path: string): boolean;
}

export interface DropFilter extends ListingFilter {
  /** Called before a listing of the whole drop. */
  begin(): void;
  /**
   * Called after it. Throws `ConfigError` when there are deeper folders than the limit: the listed files were
   * returned, but more may be there.
   */
  end(): void;
}

type Patterns = Pick<DropOptions, "name" | "include" | "exclude" | "recursive" | "depthMax" | "finish">;

export function listingFilter(options: Patterns): DropFilter {
  const { include, exclude } = options;
  const archives = archiveFolders(options.finish);
  const closed = exclude.flatMap((pattern) => (pattern.endsWith("/**") ? [pattern.slice(0, -3)] : []));
  const matches = (path: string, patterns: readonly string[]) =>
    patterns.some((pattern) => posix.matchesGlob(path.normalize("NFC"), pattern.normalize("NFC")));
  let tooDeep: string | null = null;
  const isReached = (path: string) => {
    if (path.split("/").length <= options.depthMax) return true;
    tooDeep ??= path;
    return false;
  };
  return {
    begin() {
      tooDeep = null;
    },
    end() {
      if (tooDeep !== null) throw deeper(options.name, tooDeep, options.depthMax);
    },
    takesFile: (path) =>
      !posix.basename(path).startsWith(OWN_PREFIX) &&
      (include.length === 0 || matches(path, include)) &&
      !matches(path, exclude),
    entersFolder: (path) =>
      options.recursive &&
      !posix.basename(path).startsWith(OWN_PREFIX) &&
      !archives.includes(path) &&
      !matches(path, closed) &&
      isReached(path),
  };
}

function deeper(drop: string, folder: string, depthMax: number): ConfigError {
  return new ConfigError("HG-DROP-030", {
    operation: "list drop",
    subject: drop,
    message: `the folder ${folder} of drop ${drop} is deeper than ${depthMax} folders, and is not listed`,
  });
}

// Deletes archived files after their time. Only files with the id of a run in their name are deleted; the id
// contains the time of pickup.

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
