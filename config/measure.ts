/**
 * Prints how heavy the source is: lines of code, files and their lengths, imports, halves of stories, cycles.
 * `npm run measure [-- FOLDER]`; with the folder of another checkout, that one is measured beside this one.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

interface SourceFile {
  readonly path: string;
  readonly lines: number;
  /** Lines without blanks, comments, imports and lone brackets. */
  readonly code: number;
  /** Modules of the project that it names, also for types alone. */
  readonly imports: readonly string[];
  readonly onlyReexports: boolean;
}

const IMPORT = /^(?:import|export)\s(?:[^;"]*?\sfrom\s)?"([^"]+)"[^;\n]*;/gm;
const DYNAMIC = /import\(\s*"([^"]+)"\s*\)/g;
const SHORT_LINES = 40;

const root = join(import.meta.dirname, "..");
const other = process.argv[2];
const measured = (other === undefined ? [root] : [resolve(other), root]).map((folder) => measure(folder));
for (const name of Object.keys(measured[0] ?? {}))
  process.stdout.write(`${name.padEnd(58)}${measured.map((one) => String(one[name]).padStart(12)).join("")}\n`);

function measure(folder: string): Readonly<Record<string, string | number>> {
  const files = globSync("src/**/*.ts", { cwd: folder })
    .sort()
    .map((path) => read(folder, path));
  const lines = files.reduce((sum, file) => sum + file.lines, 0);
  const imports = files.reduce((sum, file) => sum + file.imports.length, 0);
  const lengths = files.map((file) => file.lines).sort((one, two) => one - two);
  const short = lengths.filter((length) => length < SHORT_LINES).length;
  const cycles = cyclesOf(files);
  return {
    "lines of TypeScript in src": lines,
    "lines of code (no blanks, comments, imports, lone brackets)": files.reduce((sum, file) => sum + file.code, 0),
    "files in src": files.length,
    "median lines of a file": lengths[Math.trunc(lengths.length / 2)] ?? 0,
    "files under 40 lines, %": ((short / files.length) * 100).toFixed(1),
    "files over 400 lines, %": ((lengths.filter((length) => length > 400).length / files.length) * 100).toFixed(1),
    "imports of our own modules per 1,000 lines": ((imports / lines) * 1_000).toFixed(1),
    "files that only re-export": files.filter((file) => file.onlyReexports).length,
    "files whose only importer stands in their folder": halves(files),
    "import cycles, with types": cycles.length,
    "files of the largest cycle": Math.max(0, ...cycles.map((cycle) => cycle.length)),
  };
}

function read(folder: string, path: string): SourceFile {
  const text = readFileSync(join(folder, path), "utf8");
  const bare = text.replace(/^[ \t]*\/\*[\s\S]*?\*\/[ \t]*\n?/gm, "").replace(/^\s*\/\/.*\n/gm, "");
  const code = bare.replace(IMPORT, "");
  const names = [...bare.matchAll(IMPORT), ...bare.matchAll(DYNAMIC)].map(([, name = ""]) => name);
  const own = names.flatMap((name) => {
    if (name.startsWith("#")) return [`src/${name.slice(1)}`];
    return name.startsWith(".") ? [relative(folder, resolve(folder, dirname(path), name))] : [];
  });
  return {
    path,
    lines: text.split("\n").length - 1,
    code: code.split("\n").filter((line) => /\w/.test(line)).length,
    imports: own,
    onlyReexports: code.trim() === "" && /^export /m.test(bare),
  };
}

function halves(files: readonly SourceFile[]): number {
  const importers = Map.groupBy(
    files.flatMap(({ path, imports }) => [...new Set(imports)].map((target) => ({ path, target }))),
    ({ target }) => target,
  );
  return files.filter(({ path }) => {
    const [only, ...more] = importers.get(path) ?? [];
    return only !== undefined && more.length === 0 && dirname(only.path) === dirname(path);
  }).length;
}

/** Files that reach each other by their imports (Tarjan's strongly connected components). */
function cyclesOf(files: readonly SourceFile[]): readonly (readonly string[])[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Map<string, { readonly order: number; low: number }>();
  const open: string[] = [];
  const cycles: string[][] = [];
  const visit = (path: string): number => {
    const order = seen.size;
    const place = { order, low: order };
    seen.set(path, place);
    open.push(path);
    for (const target of byPath.get(path)?.imports ?? []) {
      if (!byPath.has(target)) continue;
      const known = seen.get(target);
      if (known === undefined) place.low = Math.min(place.low, visit(target));
      else if (open.includes(target)) place.low = Math.min(place.low, known.order);
    }
    if (place.low === order) {
      const cycle = open.splice(open.indexOf(path));
      if (cycle.length > 1) cycles.push(cycle);
    }
    return place.low;
  };
  for (const { path } of files) if (!seen.has(path)) visit(path);
  return cycles;
}
