/** The paths and times of the entries of a ZIP container. */
import { validateFileName } from "yauzl";
import { shownName, type ZipEntry } from "#core/zip.ts";
import { misnamed } from "./refusals.ts";

const NAME_CHARACTERS_MAX = 1_000;

/**
 * Returns the name as a path within the container. Throws for a name that leads out of it, which is meant to
 * harm.
 */
export function safeName(name: string): string {
  const fault = validateFileName(name);
  if (fault !== null) throw misnamed(`it holds an entry whose name leads out of it (${shownName(name)})`);
  const parts = name.split("/").filter((part) => part !== ".");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check is for control characters
  if (parts.includes("") || /[\0-\x1f\x7f]/.test(name) || name.length > NAME_CHARACTERS_MAX)
    throw misnamed(`it holds an entry whose name is no name of a file (${shownName(name)})`);
  return parts.join("/");
}

/**
 * When the entry last changed, as the archive says; a time without a zone is taken for UTC. In milliseconds
 * since 1970.
 */
export function modifiedMs({ raw }: ZipEntry): number {
  return raw.getLastModDate({ timezone: "UTC" }).getTime() || 0;
}
