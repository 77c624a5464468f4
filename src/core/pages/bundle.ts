/**
 * The script and the stylesheet of pages that live in the browser. The published package and the image hold them built;
 * a checkout builds them in memory when the first browser asks, from the sources as they are then.
 */
import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";

const WEB = join(import.meta.dirname, "../../pages");
/** Folders of `src/pages/`, each with a `main.ts`. */
export const LIVE_PAGES = ["explorer", "console"] as const;
export type LivePage = (typeof LIVE_PAGES)[number];

/** Written by `config/pages.ts`. */
export function builtFolder(page: LivePage, web = WEB): string {
  return join(web, page, "built");
}

const TYPES: Readonly<Record<string, string>> = { ".js": "text/javascript", ".css": "text/css" };

/** A file, whose name holds a digest of its content. */
export interface BuiltFile {
  readonly name: string;
  readonly content: Uint8Array;
}

export interface ServedFile {
  readonly type: string;
  /** By content coding; `identity` is always there. */
  readonly codings: ReadonlyMap<string, Uint8Array>;
}

export interface Bundle {
  readonly script: string;
  readonly stylesheet: string;
  readonly files: ReadonlyMap<string, ServedFile>;
}

export async function buildPage(page: LivePage): Promise<readonly BuiltFile[]> {
  const { build, stop } = await import("esbuild");
  try {
    const { outputFiles } = await build({
      entryPoints: { [page]: join(WEB, page, "main.ts") },
      outdir: builtFolder(page),
      bundle: true,
      format: "esm",
      target: "es2022",
      minify: true,
      write: false,
      legalComments: "none",
      logLevel: "silent",
    });
    return outputFiles.map(({ path, contents }) => {
      const digest = hash("sha256", contents, "hex").slice(0, 12);
      return { name: `${page}-${digest}${extname(path)}`, content: contents };
    });
  } finally {
    // Its helper process would live as long as this one.
    await stop();
  }
}

/** Loads the page's files when they are first asked for; a build that failed is tried again. */
export function bundleOf(page: LivePage): () => Promise<Bundle> {
  let loaded: Promise<Bundle> | null = null;
  return () => {
    loaded ??= loadBundle(page).catch((thrown: unknown) => {
      loaded = null;
      throw new Error(`the ${page} cannot be built: run \`npm ci\`, which brings its libraries`, { cause: thrown });
    });
    return loaded;
  };
}

async function loadBundle(page: LivePage): Promise<Bundle> {
  const folder = builtFolder(page);
  const built = existsSync(folder) ? await readBuilt(folder) : await buildPage(page);
  const files = new Map<string, ServedFile>();
  for (const { name, content } of built) files.set(name, await served(name, content));
  const nameOf = (extension: string) => {
    const found = built.find(({ name }) => extname(name) === extension);
    if (found === undefined) throw new Error(`the ${page} is built without a ${extension} file`);
    return found.name;
  };
  return { script: nameOf(".js"), stylesheet: nameOf(".css"), files };
}

async function readBuilt(folder: string): Promise<readonly BuiltFile[]> {
  const names = await readdir(folder);
  return Promise.all(names.map(async (name) => ({ name, content: await readFile(join(folder, name)) })));
}

async function served(name: string, content: Uint8Array): Promise<ServedFile> {
  const [br, gz] = await Promise.all([promisify(brotliCompress)(content), promisify(gzip)(content)]);
  const codings = new Map([
    ["br", br],
    ["gzip", gz],
    ["identity", content],
  ]);
  return { type: `${TYPES[extname(name)] ?? "application/octet-stream"}; charset=utf-8`, codings };
}
