/** Paths inside a drop: what may be asked for, and what of a listing concerns us. */
import { posix } from "node:path";
import { RejectedError } from "../support/errors.ts";
import type { DropOptions } from "./options.ts";

/** Names of our own at a drop, such as files on their way to be deleted; never listed, nor entered. */
export const OWN_PREFIX = ".headgate-";

/** True when a listed name can be a single part of a path. */
export function isPlainName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[/\0\r\n]/.test(name);
}

/** Whether it is a plain relative path below the drop's root. */
export function isInside(path: string): boolean {
  return path.split("/").every(isPlainName);
}

/** The path itself, or `RejectedError` when it is not a plain relative path below the drop's root. */
export function insideDrop(drop: string, path: string): string {
  if (isInside(path)) return path;
  throw new RejectedError("HG-DROP-005", {
    operation: "resolve path",
    subject: drop,
    message: `the path ${JSON.stringify(path)} leads out of the drop ${drop}, or is none`,
  });
}

/** What a listing hands out: the drop's patterns, without its archive folders and our own names. */
export interface ListingFilter {
  takesFile(path: string): boolean;
  entersFolder(path: string): boolean;
}

type Patterns = Pick<DropOptions, "include" | "exclude" | "recursive" | "finish">;

export function listingFilter(options: Patterns): ListingFilter {
  const { include, exclude } = options;
  const archives = Object.values(options.finish).flatMap((rule) =>
    rule.action === "archive" ? [rule.to] : [],
  );
  const closed = exclude.flatMap((pattern) => (pattern.endsWith("/**") ? [pattern.slice(0, -3)] : []));
  const matches = (path: string, patterns: readonly string[]) =>
    patterns.some((pattern) => posix.matchesGlob(path, pattern));
  return {
    takesFile: (path) =>
      !posix.basename(path).startsWith(OWN_PREFIX) &&
      (include.length === 0 || matches(path, include)) &&
      !matches(path, exclude),
    entersFolder: (path) =>
      options.recursive &&
      !posix.basename(path).startsWith(OWN_PREFIX) &&
      !archives.includes(path) &&
      !matches(path, closed),
  };
}
