/**
 * Checks the rules of the code: the import table, banned calls with their replacement, unused files, lengths, names of
 * files, paths in the documentation, the shape of mapper folders.
 */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { ALL_BATCH_STATES, ALL_RUN_STATES, ARRIVAL_STATES } from "#gateway/states.ts";

const root = resolve(import.meta.dirname, "..");
const sources = globSync("src/**/*.ts", { cwd: root }).sort();
/** The contract of the operations API. */
const API = "gateway/operations/api";
const PAGES = globSync(["docs/**/*.md", "src/*/README.md", "mappers/*/README.md", "*.md"], { cwd: root }).sort();
/** `npm run generate` writes these pages from the sources. */
const GENERATED = /^docs\/(configuration|errors|hub-configuration|metrics|dev\/specification-coverage)\.md$/;

/** The rooms of `src/`, and the others that each may import, or a part of them. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  wire: ["core"],
  mapping: ["core", "wire"],
  gateway: ["core", "wire", "mapping", "pages/kit"],
  hub: ["core", "wire", "mapping/readers", "pages/kit"],
  // A browser may load them: of the server's code only the contracts of both APIs.
  pages: ["wire/data.ts", "wire/origin.ts", "wire/search.ts", "wire/structure.ts", "wire/referentials", API],
  // The only place where gateway and hub meet.
  app: ["core", "wire", "mapping", "gateway", "hub", "pages"],
  // The entrances of the program and of the package.
  "main.ts": ["app", "core"],
  "index.ts": ["app", "core", "wire", "mapping", "gateway", "hub/hub.ts", "hub/config.ts", "hub/options.ts"],
};

/** Stages never import each other; the composition of the gateway joins them. */
const NOUNS = ["gateway/model.ts", "gateway/states.ts"];
const WITHIN: Readonly<Record<string, readonly string[]>> = {
  "mapping/readers": ["mapping/model.ts"],
  "mapping/segment": ["mapping/model.ts"],
  "gateway/model": ["gateway/states.ts"],
  "gateway/drops": NOUNS,
  "gateway/triggers": NOUNS,
  "gateway/spool": NOUNS,
  "gateway/delivery": NOUNS,
  "gateway/provisioning": NOUNS,
  "gateway/ledger": NOUNS,
  "gateway/operations": [...NOUNS, "gateway/ledger/ledger.ts"],
  "gateway/runs": [
    ...NOUNS,
    "gateway/spool",
    "gateway/drops/drop.ts",
    "gateway/delivery/delivery.ts",
    "gateway/ledger/ledger.ts",
  ],
};

/** Files that no other file imports: executables, package exports, worker threads. */
const ENTRANCES = [
  "src/main.ts",
  "src/pages/explorer/main.ts",
  "src/pages/console/main.ts",
  "src/index.ts",
  "src/mapping/mapper.ts",
  "src/mapping/authoring/kit/index.ts",
  "src/wire/index.ts",
  "src/mapping/workers/host-main.ts",
  "src/mapping/workers/host-thread.ts",
  "src/hub/calculated/engines/r/webr-watchdog.ts",
  ...sources.filter((file) => /(^|[/-])worker\.ts$/.test(file)),
];

const BANNED: readonly { call: RegExp; instead: string; except?: RegExp }[] = [
  { call: /\bconsole\.\w+\(/, instead: "the log, or print() of src/app/cli/output.ts" },
  {
    call: /\bDate\.now\(\)|new Date\(\)/,
    instead: "the clock that the component is given (src/core/clock.ts)",
    except: /^src\/core\/clock\.ts$/,
  },
  {
    call: /process\.env\b/,
    instead: "an option",
    // `host-main.ts` keeps variables that only the runtime needs from its threads, which keep one from mappers.
    except: /^src\/(main|core\/config\/document|mapping\/workers\/host-(main|thread))\.ts$/,
  },
  {
    call: /\bkind [=!]== "(sqlite|postgres)"/,
    instead: "what the ledger can do (src/gateway/ledger/options.ts, src/gateway/ledger/open.ts)",
    except: /^src\/(gateway\/ledger|hub)\//,
  },
  { call: /process\.exit\(/, instead: "an exit code or an error", except: /^src\/main\.ts$/ },
  {
    call: /catch\s*(\([^)]*\))?\s*\{\s*\}/,
    instead: "handling the error, or a comment that says why it does not matter",
  },
  { call: /[\w)]\._[a-z]\w*\(/, instead: "the public interface of the library" },
  { call: /\bas any\b|:\s*any\s*[;,)=\]}|>]|<any>/, instead: "unknown, and a check" },
  { call: /@ts-(ignore|expect-error|nocheck)/, instead: "types that are true" },
  // Sketches for authors of mappers have the form of mappers.
  { call: /^export default/m, instead: "a named export", except: /authoring\/sketch\/source\.ts$/ },
];

const FILE_LINES_MAX = 700;
const FUNCTION_LINES_MAX = 70;
/** A file that only a neighbour imports is joined with it, where both together are no longer. */
const STORY_LINES = 300;
const COLUMNS_MAX = 120;
const FOLDER_FILES_MAX = 45;

/** Longer functions that are one story: closures over a state, and mappers that read a format from top to bottom. */
const LONG_FUNCTIONS: readonly string[] = [
  "mappers/fluvius/mapper.ts",
  "mappers/green-button/mapper.ts",
  "mappers/nem12/mapper.ts",
  "mappers/standard/mapper.ts",
  "src/app/cli/migrate/migrate.ts",
  "src/gateway/gateway.ts",
  "src/gateway/ledger/postgres/shared.ts",
  "src/gateway/operations/metrics.ts",
  "src/hub/push/webhooks.ts",
  "src/mapping/time.ts",
  "src/mapping/workers/mapper-copies.ts",
  "src/mapping/workers/pool.ts",
];

/** Two or more states one after the other: in an array or a set, in a list of SQL, or compared in turn. */
const STATE_LIST = (() => {
  const states = [...ALL_RUN_STATES, ...ALL_BATCH_STATES, ...Object.keys(ARRIVAL_STATES)].join("|");
  const state = `(["'])(?:${states})`;
  const list = `[[(]\\s*(?:["']\\w+["'],\\s*)*${state}\\1,\\s*(?:["']\\w+["'],\\s*)*["'](?:${states})["']`;
  const compared = `=== "(?:${states})" \\|\\| [\\w.]+ === "(?:${states})"`;
  return new RegExp(`${list}|${compared}`);
})();

const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const filesOf = (...patterns: string[]) => globSync(patterns, { cwd: root }).sort();
/** What `find` answers for each file, with its name. */
const breachesOf = (files: readonly string[], find: (file: string) => readonly unknown[]) =>
  files.flatMap((file) => find(file).map((breach) => `${file}: ${breach}`));

test("a file imports only what its place permits", () => {
  expect(breachesOf(sources, (file) => importsOf(file).filter((target) => !allowed(file, target)))).toEqual([]);
});

test("every source file is reachable from an entrance", () => {
  const reached = new Set<string>();
  const visit = (file: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const target of importsOf(file)) visit(target);
  };
  for (const entrance of ENTRANCES) visit(entrance);
  // Types of the bundler, which nobody imports.
  for (const types of filesOf("src/pages/*/stylesheets.d.ts")) reached.add(types);
  for (const generator of filesOf("config/*.ts")) visit(generator);
  expect(sources.filter((file) => !reached.has(file))).toEqual([]);
});

test("no file makes a banned call", () => {
  const bannedIn = (file: string) =>
    BANNED.filter(({ call, except }) => call.test(withoutComments(textOf(file))) && !except?.test(file));
  expect(
    breachesOf(sources, (file) => bannedIn(file).map(({ call, instead }) => `${call.source}: use ${instead}`)),
  ).toEqual([]);
});

test("no file of the gateway lists states, which src/gateway/states.ts derives", () => {
  const files = sources.filter((file) => file !== "src/gateway/states.ts" && !file.startsWith("src/hub/"));
  expect(breachesOf(files, (file) => STATE_LIST.exec(withoutComments(textOf(file))) ?? [])).toEqual([]);
});

test("files have at most 700 lines, functions 70, lines 120 columns, and main 50 lines", () => {
  const code = [...sources, ...filesOf("mappers/*/*.ts")];
  const lengthOf = (file: string) => textOf(file).split("\n").length;
  expect(code.filter((file) => lengthOf(file) > FILE_LINES_MAX)).toEqual([]);
  expect(code.filter((file) => longFunctions(textOf(file)).length > 0).sort()).toEqual(LONG_FUNCTIONS);
  const written = [...code, ...filesOf("bench/**/*.ts", "config/*.ts"), ...PAGES].filter(
    (file) => !GENERATED.test(file),
  );
  expect(breachesOf(written, (file) => wideLines(textOf(file), file))).toEqual([]);
  expect(lengthOf("src/main.ts")).toBeLessThan(50);
});

test("a short file whose only importer is a neighbour stands in it, or its first comment says why it is apart", () => {
  const imports = sources.flatMap((file) => [...new Set(importsOf(file))].map((target) => ({ file, target })));
  const importers = Map.groupBy(imports, ({ target }) => target);
  const linesOf = (file: string) => textOf(file).split("\n").length;
  const isJoined = (file: string) => {
    const [only, ...others] = importers.get(file) ?? [];
    if (only === undefined || others.length > 0 || dirname(only.file) !== dirname(file)) return true;
    if (/\/index\.ts$/.test(only.file) || ENTRANCES.includes(file) || ENTRANCES.includes(only.file)) return true;
    // Loaded when it is needed.
    if (textOf(only.file).includes(`import("./${basename(file)}")`)) return true;
    return linesOf(file) + linesOf(only.file) > STORY_LINES || /\bapart\b/i.test(firstComment(textOf(file)));
  };
  expect(sources.filter((file) => !isJoined(file))).toEqual([]);
});

function firstComment(text: string): string {
  return /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? "";
}

test("a folder has at most 45 source files", () => {
  const counts = [...Map.groupBy(sources, (file) => dirname(file))];
  expect(counts.filter(([, files]) => files.length > FOLDER_FILES_MAX).map(([folder]) => folder)).toEqual([]);
});

test("a file is named by a noun, not by a form in -ing", () => {
  const files = filesOf("src/**/*.*", "test/**/*.ts", "bench/**/*.ts", "config/*.*", "mappers/**/*.*", "docs/**/*.*");
  expect(files.filter((file) => /ing(\.\w+)+$/.test(file))).toEqual([]);
});

test("the documentation names files that are there", () => {
  const missing = (page: string) => {
    const named = [...textOf(page).matchAll(/`((?:src|test|config|bench|mappers|samples|docs)\/[\w./-]*)`/g)];
    // The anchor of a link is cut off.
    const linked = [...textOf(page).matchAll(/\]\((?!\w+:|#)([^)#\s]+)[^)]*\)/g)];
    const paths = [
      ...named.map(([, path = ""]) => path),
      ...linked.map(([, path = ""]) => relative(root, resolve(root, dirname(page), path))),
    ];
    // The tutorial creates a mapper of this name.
    return paths.filter((path) => !path.startsWith("mappers/acme/") && !existsSync(join(root, path)));
  };
  expect(breachesOf(PAGES, missing)).toEqual([]);
});

test("migrations are numbered from 1, each once: a store skips a number that it has passed", () => {
  for (const folder of filesOf("src/**/*migrations/")) {
    const numbers = readdirSync(join(root, folder)).map((file) => Number(/^(\d{3})-.*\.sql$/.exec(file)?.[1]));
    expect(numbers.toSorted((one, other) => one - other)).toEqual(numbers.map((_, at) => at + 1));
  }
});

test("a mapper's folder has a mapper, a README and cases, and imports only the public contract and shared code", () => {
  const folders = readdirSync(join(root, "mappers")).filter((name) =>
    statSync(join(root, "mappers", name)).isDirectory(),
  );
  const isForeign = (word: string) => /^\.\.\/(?!_[a-z]+\/)/.test(word) || /^headgate(?!\/mapper$)/.test(word);
  expect(breachesOf(filesOf("mappers/*/*.ts"), (file) => importWords(textOf(file)).filter(isForeign))).toEqual([]);
  // Folders that begin with an underscore hold code that several mappers share.
  for (const name of folders.filter((folder) => !folder.startsWith("_"))) {
    const folder = join(root, "mappers", name);
    expect([name, existsSync(join(folder, "mapper.ts")), existsSync(join(folder, "README.md"))]).toEqual([
      name,
      true,
      true,
    ]);
    const cases = readdirSync(join(folder, "cases"));
    expect(cases.length, name).toBeGreaterThan(0);
    for (const one of cases) {
      const files = readdirSync(join(folder, "cases", one));
      expect(files.some((file) => file.startsWith("input")) && files.some((file) => file.startsWith("expected"))).toBe(
        true,
      );
    }
  }
});

function allowed(file: string, target: string): boolean {
  const from = relative("src", file);
  const to = relative("src", target);
  const isIn = (place: string) => to === place || to.startsWith(`${place}/`);
  const room = roomOf(from);
  if (roomOf(to) !== room) return ROOMS[room]?.some(isIn) === true;
  const place = Object.keys(WITHIN).find((one) => from.startsWith(`${one}/`));
  return place === undefined || isIn(place) || WITHIN[place]?.some(isIn) === true;
}

function roomOf(path: string): string {
  return path.split("/")[0] ?? path;
}

/**
 * Project files that a file imports, relative to the root; also those that only `new URL("…",
 * import.meta.url)` names.
 */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  return importWords(text).flatMap((word) => {
    if (word.startsWith("#")) return [`src/${word.slice(1)}`];
    return word.startsWith(".") ? [relative(root, resolve(join(root, dirname(file)), word))] : [];
  });
}

function importWords(text: string): string[] {
  const found = withoutComments(text).matchAll(
    /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|(?:^|\n)import\s+"([^"]+)"/g,
  );
  return [...found].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

function withoutComments(text: string): string {
  return text.replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, "").replace(/(^|\s)\/\/ .*$/gm, "$1");
}

/** In pages, tables and code blocks may be wide. */
function wideLines(text: string, file: string): readonly string[] {
  let isCode = false;
  return text.split("\n").flatMap((line, at) => {
    if (file.endsWith(".md") && line.trimStart().startsWith("```")) isCode = !isCode;
    const isFree = file.endsWith(".md") && (isCode || line.startsWith("|"));
    return !isFree && line.length > COLUMNS_MAX ? [`line ${at + 1} has ${line.length} columns`] : [];
  });
}

const CONTROL = /^\s*(\} )?(if|for|while|switch|catch|else|do|try)\b/;
/** The formatter puts the end of a function at the indentation of its first line. */
const OPENS = /(\bfunction\b.*|=> |\)(: [^=]+)? )\{$/;

function longFunctions(text: string): readonly number[] {
  const all = text.split("\n");
  return all.flatMap((line, at) => {
    if (!OPENS.test(line) || CONTROL.test(line)) return [];
    const indent = /^\s*/.exec(line)?.[0] ?? "";
    const length = all.slice(at + 1).findIndex((one) => one.startsWith(`${indent}}`));
    const body = all.slice(at, at + 2 + length).filter((one) => one.trim() !== "");
    return body.length > FUNCTION_LINES_MAX ? [at + 1] : [];
  });
}
