/** Mappers on disk: `<folder>/<name>/mapper.ts` or `<folder>/<name>.ts` (or `.js`), and the digest over their files. */
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import { unlessMissing } from "#core/errors.ts";

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const CODE = /\.[cm]?[jt]s$/;
/** Files that are not part of a mapper: its documentation and tests, and leftovers of editors. */
const BESIDE = /^[.#]|~$|\.(?:md|bak|orig|swp|tmp)$|\.test\.[cm]?[jt]s$/i;
/** Folders that are not part of a mapper. */
const APART = ["cases", "node_modules"];

/** The module of a mapper in the first folder that has it, or null. */
export async function locateMapper(folders: readonly string[], name: string): Promise<string | null> {
  if (!NAME.test(name)) return null;
  for (const folder of folders) {
    for (const candidate of [join(name, "mapper.ts"), join(name, "mapper.js"), `${name}.ts`, `${name}.js`]) {
      const path = join(folder, candidate);
      if (await isFile(path)) return path;
    }
  }
  return null;
}

/** The name that a trigger uses, from the path of the module. */
export function nameOf(modulePath: string): string {
  const file = basename(modulePath, extname(modulePath));
  return file === "mapper" ? basename(dirname(modulePath)) : file;
}

/** Names of the mappers in the folders, in alphabetical order. */
export async function mapperNames(folders: readonly string[]): Promise<string[]> {
  const names = new Set<string>();
  for (const folder of folders) {
    for (const entry of await listFolder(folder)) {
      const name = entry.replace(/(?<!\.d|\.test)\.[jt]s$/, "");
      if ((await locateMapper([folder], name)) !== null) names.add(name);
    }
  }
  return [...names].sort();
}

/** The files of a mapper, as they were read. */
export interface MapperContent {
  /**
   * Lower-case hexadecimal SHA-256 over names and bytes of the whole folder of `mapper.ts` without its cases, or of the
   * single file, and of every outside file that they import by relative path, such as code that several mappers share.
   */
  readonly digest: string;
  /** Absolute paths. */
  readonly files: readonly { readonly path: string; readonly bytes: Buffer }[];
}

export async function readMapper(givenPath: string): Promise<MapperContent> {
  const hash = createHash("sha256");
  // Imports are resolved to absolute paths: a file must not count twice under two names.
  const modulePath = resolve(givenPath);
  const root = dirname(modulePath);
  const files: { path: string; bytes: Buffer }[] = [];
  const seen = new Set(await ownFiles(modulePath));
  // The list grows during the loop: imported files may import others.
  for (const path of seen) {
    const bytes = await readFile(path);
    files.push({ path, bytes });
    hash.update(`${relative(root, path).split(sep).join("/")}\0${bytes.length}\0`).update(bytes);
    if (!CODE.test(path)) continue;
    for (const imported of relativeImports(bytes.toString("utf8"))) {
      const target = resolve(dirname(path), imported);
      // A missing file makes loading fail with a clearer message.
      if (await isFile(target)) seen.add(target);
    }
  }
  return { digest: hash.digest("hex"), files };
}

/** See `MapperContent`. */
export async function digestMapper(modulePath: string): Promise<string> {
  return (await readMapper(modulePath)).digest;
}

/** Specifiers that a static or dynamic import or a re-export names by relative path. */
function relativeImports(source: string): string[] {
  const found = source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g);
  return [...found].map((match) => match[2] ?? "");
}

async function ownFiles(modulePath: string): Promise<string[]> {
  if (!/^mapper\.[jt]s$/.test(basename(modulePath))) return [modulePath];
  const root = dirname(modulePath);
  const entries = (await readdir(root, { withFileTypes: true })).filter(({ name }) => !APART.includes(name));
  // Reads folder by folder: cases are many, and this runs at each poll.
  for (const { name } of entries.filter((entry) => entry.isDirectory()))
    entries.push(...(await readdir(join(root, name), { recursive: true, withFileTypes: true })));
  return entries
    .filter((entry) => entry.isFile() && !BESIDE.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** A configured folder that does not exist (yet) holds no mappers. */
function listFolder(folder: string): Promise<string[]> {
  return unlessMissing(readdir(folder), []);
}

async function isFile(path: string): Promise<boolean> {
  return (await unlessMissing(stat(path), null))?.isFile() === true;
}
