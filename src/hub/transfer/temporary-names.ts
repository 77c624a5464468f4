/** Names under which senders write files that are not complete yet. */
import { basename, dirname, join } from "node:path";

interface Names {
  /** Endings (`*.part`) and beginnings (`.in.*`), in any case. */
  readonly temporaryNames: readonly string[];
}

export function isTemporary(path: string, { temporaryNames }: Names): boolean {
  return temporaryNames.some((pattern) => isOf(basename(path), pattern));
}

/** The name that the file will probably get: without the part that makes its name a temporary one. */
export function finalName(path: string, { temporaryNames }: Names): string {
  const name = basename(path);
  const pattern = temporaryNames.find((one) => isOf(name, one));
  if (pattern === undefined) return path;
  const length = pattern.length - 1;
  return join(dirname(path), pattern.startsWith("*") ? name.slice(0, -length) : name.slice(length));
}

function isOf(name: string, pattern: string): boolean {
  const part = pattern.toLowerCase().replace("*", "");
  return pattern.startsWith("*") ? name.toLowerCase().endsWith(part) : name.toLowerCase().startsWith(part);
}
