/**
 * The files of every version of a mapper that a run may be bound to: `<root>/<name>/<digest>/` contains them
 * in their relative places, and `<root>/<name>/<digest>.json` describes them. A copy gets its name only when
 * it is complete.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { z } from "zod";
import { syncDirectory, writeDurably } from "#core/durable.ts";
import { ConfigError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { digestMapper, type MapperContent, nameOf } from "../mapper-files.ts";
import type { MapperModule } from "./messages.ts";

/** The store in which nodes share versions; `SharedContent` of the ledger has this shape. */
export interface SharedMappers {
  keep(kind: "mapper", name: string, bytes: () => Promise<Buffer>): Promise<void>;
  find(kind: "mapper", name: string): Promise<Buffer | null>;
}

export interface MapperCopies {
  /** Copies this version, unless a copy exists. */
  keep(modulePath: string, content: MapperContent): Promise<MapperModule>;
  /** The bytes of a local copy, for `unpack` on another node. */
  pack(name: string, digest: string): Promise<Buffer>;
  /**
   * Restores the copy of another node locally, as if the mapper were at `origin`. Null when it is not of this
   * version.
   */
  unpack(name: string, digest: string, packed: Buffer, origin: string | null): Promise<MapperModule | null>;
  /** The copy as `keep` returns it, be it there or not. */
  expected(modulePath: string, content: MapperContent): MapperModule;
  /** The copy of this version, or null when there is no complete one. */
  find(name: string, digest: string): Promise<MapperModule | null>;
  /** The version for new runs. */
  current(name: string): Promise<CurrentVersion | null>;
  setCurrent(name: string, version: CurrentVersion): Promise<void>;
  /** Removes copies that were last used before this time, and are not current. Returns how many. */
  prune(beforeMs: number): Promise<number>;
}

const currentVersion = z.object({ version: z.string(), digest: z.string() });
export type CurrentVersion = z.output<typeof currentVersion>;

const copyFacts = z.object({ module: z.string(), origin: z.string() });

const packedCopy = z.object({
  module: z.string(),
  files: z.array(z.object({ path: z.string(), base64: z.string() })),
});

/** Limit in bytes; a mapper is code, and tables belong in `lookups`. */
const SIZE_MAX = 64_000_000;
const CURRENT = "current.json";
const PART = ".part";
const FACTS = ".json";
/** The time of the last use is written this often. */
const TOUCH_MS = 3_600_000;

/** `nowMs` returns the time of a use. */
export function createMapperCopies(root: string, nowMs: () => number): MapperCopies {
  /** Copies whose bytes this process has compared with their digest, and when their use was last written. */
  const known = new Map<string, { readonly module: MapperModule; touchedMs: number }>();
  const makings = new Map<string, Promise<MapperModule>>();
  const folderOf = (name: string, digest: string) => join(root, name, digest);

  async function find(name: string, digest: string): Promise<MapperModule | null> {
    const folder = folderOf(name, digest);
    let entry = known.get(folder);
    if (entry === undefined) {
      const module = await readCopy(folder, digest);
      if (module === null) return null;
      entry = { module, touchedMs: Number.NEGATIVE_INFINITY };
      known.set(folder, entry);
    }
    const now = nowMs();
    if (now - entry.touchedMs >= TOUCH_MS) {
      await utimes(`${folder}${FACTS}`, now / 1000, now / 1000);
      entry.touchedMs = now;
    }
    return entry.module;
  }

  async function make(modulePath: string, content: MapperContent): Promise<MapperModule> {
    const name = nameOf(modulePath);
    try {
      await writeCopy(folderOf(name, content.digest), modulePath, content);
    } catch (thrown) {
      throw systemCode(thrown) === undefined ? thrown : notKept(name, wordsOf(thrown), thrown);
    }
    const made = await find(name, content.digest);
    if (made === null) throw notKept(name, "the written files have other content");
    return made;
  }

  /** A fault of the disk, not of the file that is being mapped. */
  function notKept(name: string, why: string, cause?: unknown): TransientError {
    return new TransientError("HG-SPOOL-004", {
      operation: "copy mapper",
      subject: name,
      message: `the mapper ${name} cannot be copied to ${root}: ${why}`,
      cause,
    });
  }

  return {
    find,
    expected(modulePath, { digest, files }) {
      const folder = folderOf(nameOf(modulePath), digest);
      return { modulePath: join(folder, relative(baseOf(modulePath, files), modulePath)), digest, origin: modulePath };
    },
    async keep(modulePath, content) {
      const name = nameOf(modulePath);
      const found = await find(name, content.digest);
      if (found !== null) return found;
      // Concurrent files need the same copy: one of them creates it.
      const folder = folderOf(name, content.digest);
      const making = makings.get(folder) ?? make(modulePath, content).finally(() => makings.delete(folder));
      makings.set(folder, making);
      return await making;
    },
    async pack(name, digest) {
      const folder = folderOf(name, digest);
      const facts = await readJson(`${folder}${FACTS}`, copyFacts);
      if (facts === null) throw notKept(name, "its copy is missing");
      const files: z.output<typeof packedCopy>["files"] = [];
      for (const item of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!item.isFile()) continue;
        const path = join(item.parentPath, item.name);
        files.push({ path: relative(folder, path), base64: await readFile(path, "base64") });
      }
      return Buffer.from(JSON.stringify({ module: facts.module, files } satisfies z.output<typeof packedCopy>));
    },
    async unpack(name, digest, packed, origin) {
      const { module, files } = packedCopy.parse(JSON.parse(packed.toString()));
      const folder = folderOf(name, digest);
      const entries = files.map(({ path, base64 }) => ({ path, bytes: Buffer.from(base64, "base64") }));
      if (
        [module, ...files.map(({ path }) => path)].some((path) => relative(folder, join(folder, path)).startsWith(".."))
      )
        return null;
      try {
        await placeCopy(folder, entries, { module, origin: origin ?? join(folder, module) });
      } catch (thrown) {
        throw systemCode(thrown) === undefined ? thrown : notKept(name, wordsOf(thrown), thrown);
      }
      return await find(name, digest);
    },
    current: (name) => readJson(join(root, name, CURRENT), currentVersion),
    setCurrent: (name, version) => writeDurably(join(root, name, CURRENT), JSON.stringify(version)),
    async prune(beforeMs) {
      let removed = 0;
      for (const name of await list(root)) {
        const current = await readJson(join(root, name, CURRENT), currentVersion);
        for (const file of await list(join(root, name))) {
          const digest = file.slice(0, -FACTS.length);
          if (file === CURRENT || !file.endsWith(FACTS) || digest === current?.digest) continue;
          const facts = join(root, name, file);
          if ((await stat(facts)).mtimeMs >= beforeMs) continue;
          known.delete(folderOf(name, digest));
          await rm(facts, { force: true });
          await rm(folderOf(name, digest), { recursive: true, force: true });
          removed += 1;
        }
      }
      return removed;
    },
  };
}

async function writeCopy(folder: string, modulePath: string, { files }: MapperContent): Promise<void> {
  const size = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
  if (size > SIZE_MAX)
    throw new ConfigError("HG-MAP-003", {
      operation: "copy mapper",
      subject: modulePath,
      message:
        `the mapper ${nameOf(modulePath)} takes ${Math.round(size / 1e6)} MB, ` +
        `and at most ${SIZE_MAX / 1e6} MB are kept; tables belong in \`lookups\``,
    });
  const base = baseOf(modulePath, files);
  const entries = files.map(({ path, bytes }) => ({ path: relative(base, path), bytes }));
  await placeCopy(folder, entries, { module: relative(base, modulePath), origin: modulePath });
}

/** The name of the folder is kept, since it is the name of the mapper, and so are relative paths to shared files. */
function baseOf(modulePath: string, files: MapperContent["files"]): string {
  return files.reduce((common, { path }) => commonFolder(common, dirname(path)), dirname(dirname(modulePath)));
}

/** Paths are relative to the folder. */
async function placeCopy(
  folder: string,
  files: readonly { readonly path: string; readonly bytes: Buffer }[],
  facts: z.output<typeof copyFacts>,
): Promise<void> {
  const part = `${folder}.${randomBytes(4).toString("hex")}${PART}`;
  for (const { path, bytes } of files) await writeDurably(join(part, path), bytes);
  // An existing folder is incomplete, or it would have been found.
  await rm(folder, { recursive: true, force: true });
  await rename(part, folder);
  await syncDirectory(dirname(folder));
  await writeDurably(`${folder}${FACTS}`, JSON.stringify(facts));
}

async function readCopy(folder: string, digest: string): Promise<MapperModule | null> {
  const facts = await readJson(`${folder}${FACTS}`, copyFacts);
  if (facts === null) return null;
  const modulePath = join(folder, facts.module);
  try {
    if ((await digestMapper(modulePath)) !== digest) return null;
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return null;
    throw thrown;
  }
  return { modulePath, digest, origin: facts.origin };
}

function commonFolder(a: string, b: string): string {
  for (let folder = a; ; folder = dirname(folder)) {
    const way = relative(folder, b);
    if (!way.startsWith("..") || folder === dirname(folder)) return folder;
  }
}

async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT" || systemCode(thrown) === "ENOTDIR") return null;
    throw thrown;
  }
  const parsed = schema.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : null;
}

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT" || systemCode(thrown) === "ENOTDIR") return [];
    throw thrown;
  }
}
