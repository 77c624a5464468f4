/** Files that pack others, by their names. */
import { basename } from "node:path/posix";

/** Decides by the name alone: an `.xlsx` is a zip by its bytes, but is read as a file. */
export function isContainerName(fileName: string): boolean {
  return /^.+\.(zip|gz)$/i.test(fileName);
}

export function isZipName(fileName: string): boolean {
  return /\.zip$/i.test(fileName);
}

/** Of the only file in a gzip: the name that it may carry inside is for the sender's own use. */
export function gzipEntryName(fileName: string): string {
  return basename(fileName).slice(0, -".gz".length);
}
