/** Paths inside a drop: which are permitted, and which of a listing belong to the drop. */
import { posix } from "node:path";
import { ConfigError, RejectedError } from "#core/errors.ts";
import { archiveFolders } from "./archive-cleanup.ts";
import type { DropOptions } from "./options.ts";

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
