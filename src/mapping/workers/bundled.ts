/** The mappers that come with Headgate, among the folders of mappers. */
import { resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { MappingPool } from "../contract.ts";
import { digestMapper, locateMapper } from "../mapper-files.ts";

/** Their folder. */
export const BUNDLED_FOLDER = fileURLToPath(new URL("../../../mappers", import.meta.url));

/** Whether a module is bundled with Headgate. */
export function isBundled(modulePath: string): boolean {
  // The recorded origin of a copy is in a folder that mappers may write; no path through the folder leads out
  // of it.
  return resolve(modulePath).startsWith(`${BUNDLED_FOLDER}${sep}`);
}

/** The configured folders and, last, the bundled one. */
export function searchFolders(folders: readonly string[]): readonly string[] {
  return [...new Set([...folders, BUNDLED_FOLDER])];
}

/** Starts the process of this mapper ahead of its first file, if it comes with Headgate: others are checked first. */
export async function prepareBundled(pool: MappingPool, folders: readonly string[], name: string): Promise<void> {
  const modulePath = await locateMapper(searchFolders(folders), name);
  if (modulePath !== null && isBundled(modulePath))
    await pool.prepare({ name, digest: await digestMapper(modulePath) });
}
