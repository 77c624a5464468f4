/** The files of golden cases: their names and their digest, for which nothing of a mapper is loaded. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { unlessMissing } from "#core/errors.ts";

/** Names of the cases of a mapper, in alphabetical order. Only a mapper with a folder of its own has cases. */
export async function listCases(modulePath: string): Promise<string[]> {
  if (!/^mapper\.[jt]s$/.test(basename(modulePath))) return [];
  const entries = await unlessMissing(readdir(join(dirname(modulePath), "cases"), { withFileTypes: true }), []);
  return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
}

/** Lower-case hexadecimal SHA-256 over the names and bytes of all cases of a mapper. */
export async function casesDigest(modulePath: string): Promise<string> {
  const hash = createHash("sha256");
  const root = join(dirname(modulePath), "cases");
  for (const name of await listCases(modulePath)) {
    const entries = await readdir(join(root, name), { recursive: true, withFileTypes: true });
    const paths = entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
    for (const path of paths.sort()) {
      const bytes = await readFile(path);
      hash.update(`${relative(root, path)}\0${bytes.length}\0`).update(bytes);
    }
  }
  return hash.digest("hex");
}
