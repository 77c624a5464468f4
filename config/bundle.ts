/**
 * Bundles the sources into few modules, for the published package: a module costs a start a third of a millisecond
 * (docs/dev/decisions/0033). Every source is in exactly one chunk, which all entries share, so that each class exists
 * once.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type CodeSplittingGroup, type OutputChunk, type Plugin, type PluginContext, rolldown } from "rolldown";
import * as messages from "zod/locales";

const root = join(import.meta.dirname, "..");

/** Modules of the package's `exports`. */
const EXPORTS = ["src/index", "src/mapping/mapper", "src/mapping/authoring/kit/index", "src/wire/index"];

/** Started by Node as programs or threads: each is a file of its own, at its place in the tree. */
const STARTED = [
  "src/main",
  "src/mapping/workers/host-main",
  "src/mapping/workers/host-thread",
  "src/gateway/drops/local/worker",
  "src/gateway/spool/spool-worker",
  "src/gateway/spool/packer-worker",
  "src/gateway/console/validation-worker",
  "src/hub/files/folder-worker",
  "src/hub/push/worker",
  "src/hub/store/sqlite/apart-worker",
  "src/hub/master-data/worker",
  "src/hub/quality/worker",
  "src/hub/calculated/recalculation/worker",
  "src/hub/calculated/engines/expressions/worker",
];

/** The process of R scripts, which may read this folder alone: it has copies of what it shares with the others. */
const APART = "src/hub/calculated/engines/r";
const STARTED_APART = [`${APART}/webr-worker`, `${APART}/webr-watchdog`];

/** What the command that maps one file says, which starts a host before it loads anything else. */
const WORDS = ["src/core/text"];

/**
 * Chunks of what is loaded together, by the modules that need it. A module is in the first chunk of these, and in one
 * that the bundler chooses where none of these needs it.
 */
const CHUNKS: Readonly<Record<string, readonly string[]>> = {
  disk: ["src/gateway/drops/local/worker", "src/gateway/spool/spool-worker", "src/gateway/spool/packer-worker"],
  host: ["src/mapping/workers/host-main"],
  program: ["src/main"],
  pool: ["src/mapping/workers/pool", "src/mapping/contract", ...WORDS],
  log: ["src/core/log"],
  mapping: ["src/mapping/workers/host-thread"],
  catalogue: ["src/mapping/workers/catalogue"],
  queries: ["src/app/cli/runs", "src/app/cli/trace"],
  gateway: ["src/app/cli/gateway", "src/gateway/drops/local/local", "src/gateway/drops/put-file"],
};

/** Libraries of every start. The others are loaded from their own files, when they are needed. */
const BUNDLED = [
  "@opentelemetry/api",
  "@streamparser/json",
  "chokidar",
  "cli-table3",
  "cockatiel",
  "commander",
  "croner",
  "csv-parse",
  "jose",
  "leven",
  "prom-client",
  "saxes",
  "yaml",
  "yauzl",
  "zod",
];

/** Writes the bundled sources into `dist`. */
export async function bundleInto(dist: string): Promise<void> {
  const chunks = [
    ...(await bundle(dist, [...EXPORTS, ...STARTED], "chunks", groups())),
    ...(await bundle(dist, STARTED_APART, APART, [])),
  ];
  for (const one of chunks) {
    writePlain(dist, one);
    shortenMap(dist, one);
  }
  writeFileSync(join(dist, "chunks/LICENSES.txt"), licencesOf(chunks.flatMap((one) => one.moduleIds)));
}

async function bundle(
  dist: string,
  entries: readonly string[],
  folder: string,
  groups: CodeSplittingGroup[],
): Promise<readonly OutputChunk[]> {
  const build = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, sourceOf(name)])),
    platform: "node",
    external: (id) => dependencies().some((name) => id === name || id.startsWith(`${name}/`)),
    plugins: [inPlace, foreignMessages],
    resolve: { conditionNames: ["headgate-source", "node", "import", "require"] },
    checks: { circularDependency: false, ineffectiveDynamicImport: false },
  });
  const { output } = await build.write({
    dir: dist,
    format: "esm",
    sourcemap: true,
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: `${folder}/[name]-[hash].js`,
    banner: ({ fileName }) =>
      `const BUNDLE_PLACE = new URL("${"../".repeat(fileName.split("/").length - 1)}", import.meta.url);`,
    codeSplitting: { groups },
  });
  await build.close();
  return output.filter((one) => one.type === "chunk");
}

/** The first takes its modules first: a chunk takes what its modules need along. */
function groups(): CodeSplittingGroup[] {
  const chunkOf = chunkNames();
  const names = Object.keys(CHUNKS);
  return names.map((name, index) => ({
    name: (id, modules) => (chunkOf(id, modules) === name ? name : null),
    debugName: name,
    priority: names.length - index,
  }));
}

function sourceOf(name: string): string {
  return join(root, `${name}.ts`);
}

function dependencies(): readonly string[] {
  const facts = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: object };
  return Object.keys(facts.dependencies).filter((name) => !BUNDLED.includes(name));
}

/**
 * A source finds its migrations, threads and pages from its place in the tree, wherever its code is. The bundler does
 * not know the constant of the banner, so that no source may have one of that name.
 */
const inPlace: Plugin = {
  name: "in-place",
  transform(code, id) {
    if (!id.startsWith(join(root, "src/")) || !code.includes("import.meta.")) return null;
    const place = relative(root, id).replace(/\.ts$/, ".js");
    const path = (name: string) =>
      `process.getBuiltinModule("node:url").fileURLToPath(new URL("${name}", BUNDLE_PLACE))`;
    const placed = code
      .replaceAll("import.meta.url", `new URL("${place}", BUNDLE_PLACE).href`)
      .replaceAll("import.meta.dirname", path(dirname(place)))
      .replaceAll("import.meta.filename", path(place));
    return { code: placed, map: null };
  },
};

/**
 * The messages of zod in other languages, 330 KB, are loaded from its own files: no command needs them, and a mapper
 * may. A chunk has those in English.
 */
const foreignMessages: Plugin = {
  name: "foreign-messages",
  load(id) {
    if (!/[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/.test(id)) return null;
    const loaded = 'process.getBuiltinModule("node:module").createRequire(import.meta.url)("zod/locales")';
    const exports = Object.keys(messages).map((name) => `export const ${name} = () => ${loaded}.${name}();`);
    return { code: exports.join("\n"), map: null };
  },
};

type Modules = Pick<PluginContext, "getModuleInfo">;

/** The name of a module's chunk; null where the bundler may choose. */
function chunkNames(): (id: string, modules: Modules) => string | null {
  const known = new Map<string, string | null>(STARTED.map((name) => [sourceOf(name), null]));
  let isKnown = false;
  return (id, modules) => {
    if (!isKnown) for (const [name, roots] of Object.entries(CHUNKS)) claim(name, roots.map(sourceOf), known, modules);
    isKnown = true;
    return known.get(id) ?? null;
  };
}

function claim(name: string, roots: readonly string[], known: Map<string, string | null>, modules: Modules): void {
  const needed = new Set(roots);
  for (const id of needed) {
    if (!known.has(id)) known.set(id, name);
    // The set grows during the loop.
    for (const imported of modules.getModuleInfo(id)?.importedIds ?? []) needed.add(imported);
  }
}

/**
 * V8 keeps the text of a chunk, with two bytes for each character as soon as one of them has more than one: so such
 * characters are written as escapes.
 */
function writePlain(dist: string, { fileName, code }: OutputChunk): void {
  if (/String\.raw`[^`]*[^\0-\x7f]|(?<!\\)(?:\\\\)*\\[^\0-\x7f]/.test(code))
    throw new Error(`${fileName} has a character where an escape of it would be another text`);
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  writeFileSync(join(dist, fileName), code.replace(/[^\0-\x7f]/g, escaped));
}

/** Traces need the places alone, and not the text of the sources. */
function shortenMap(dist: string, { fileName, map }: OutputChunk): void {
  if (map === null) return;
  const { sourcesContent: _, ...places } = JSON.parse(map.toString()) as Record<string, unknown>;
  writeFileSync(join(dist, `${fileName}.map`), JSON.stringify(places));
}

/** Of the libraries that these modules are of. */
function licencesOf(ids: readonly string[]): string {
  const folders = ids.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(id)?.[0] ?? []);
  return [...new Set(folders)]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const [file] = globSync("{LICENSE,LICENCE,License,license}*", { cwd: folder });
      const words = file === undefined ? `License: ${license}\n` : readFileSync(join(folder, file), "utf8");
      return `${name} ${version}\n\n${words}`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}
