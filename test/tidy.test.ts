/**
 * Checks the rules of the code: the import table, banned calls and words with their replacement, unused files, lengths,
 * the shape of mapper folders.
 */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ALL_BATCH_STATES, ALL_RUN_STATES, ARRIVAL_STATES } from "../src/states.ts";
import { countsOf, MEASURES, textOf } from "./tidy/measures.ts";
import { compare, readRatchet } from "./tidy/ratchet.ts";
import { bannedWordsIn } from "./tidy/words.ts";

const root = resolve(import.meta.dirname, "..");
const sources = globSync("src/**/*.ts", { cwd: root }).sort();

/** Folders that only the composition root may join: `gateway.ts`, and its helpers in `gateway/`. */
const JOINED = [
  "model.ts",
  "states.ts",
  "config",
  "drops",
  "triggers",
  "mapping",
  "workers",
  "authoring",
  "delivery",
  "ledger",
  "provisioning",
  "runs",
  "spool",
  "segment",
  "operations",
  "support",
  "wire",
] as const;

/** The import table of the architecture: the places of `src/`, and what each may import beside itself and packages. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "main.ts": ["cli", "support"],
  "index.ts": ["model.ts", "gateway.ts", "platform.ts", "config", "support", "wire", "hub/hub.ts", "hub/options.ts"],
  "gateway.ts": ["gateway", ...JOINED],
  gateway: [...JOINED, "readers"],
  // A hub with a gateway inside: nothing else imports both.
  "platform.ts": ["platform", "model.ts", "gateway.ts", "hub", "workers", "support"],
  platform: [
    "model.ts",
    "states.ts",
    "gateway.ts",
    "config",
    "drops",
    "hub",
    "ledger/ledger.ts",
    "mapping/contract.ts",
    "support",
    "wire",
  ],
  "states.ts": ["states"],
  states: [],
  "model.ts": ["model", "states.ts", "wire"],
  model: ["states.ts", "wire"],
  cli: [
    "model.ts",
    "states.ts",
    "gateway.ts",
    "gateway",
    "config",
    "drops",
    "triggers",
    "readers",
    "mapping",
    "workers",
    "authoring",
    "delivery",
    "ledger",
    "migration",
    "provisioning",
    "runs",
    "spool",
    "segment",
    "operations",
    "sql",
    "support",
    "wire",
    "hub/hub.ts",
    "hub/options.ts",
    // The servers of the demo's field.
    "hub/transfer",
    "platform.ts",
    "platform/hub-probe.ts",
    "platform/inner-config.ts",
    "platform/stored-files.ts",
  ],
  config: [
    "delivery/options.ts",
    "drops/options.ts",
    "hub/options.ts",
    "ledger/options.ts",
    "mapping/options.ts",
    "operations/options.ts",
    "provisioning/options.ts",
    "spool/options.ts",
    "triggers/options.ts",
    "support",
  ],
  drops: ["model.ts", "wire", "support"],
  triggers: ["model.ts", "states.ts", "wire", "support"],
  segment: ["model.ts", "support"],
  spool: ["model.ts", "segment", "support"],
  readers: ["model.ts", "support"],
  mapping: ["model.ts", "readers", "segment", "wire", "support"],
  workers: ["model.ts", "authoring/case-files.ts", "authoring/cases.ts", "mapping", "readers", "segment", "support"],
  authoring: ["model.ts", "mapping", "readers", "segment", "wire", "support"],
  delivery: ["model.ts", "states.ts", "wire", "support"],
  "master-data": ["readers", "wire", "support"],
  provisioning: ["model.ts", "master-data", "wire", "support"],
  ledger: ["model.ts", "states.ts", "sql", "support"],
  runs: [
    "model.ts",
    "states.ts",
    "support",
    "segment",
    "spool",
    "drops/drop.ts",
    "mapping/contract.ts",
    "delivery/delivery.ts",
    "ledger/ledger.ts",
  ],
  migration: [
    "model.ts",
    "states.ts",
    "gateway.ts",
    "gateway",
    "config",
    "drops",
    "triggers",
    "readers",
    "mapping",
    "workers",
    "delivery",
    "ledger",
    "master-data",
    "provisioning",
    "runs",
    "segment",
    "spool",
    "support",
    "wire",
  ],
  operations: ["model.ts", "model", "states.ts", "ledger/ledger.ts", "web/kit", "support", "wire"],
  // Components of pages, which a browser may load: of ours only the contracts of the wire and the operations API.
  web: ["wire/data.ts", "wire/origin.ts", "wire/search.ts", "wire/structure.ts", "wire/referentials", "operations/api"],
  hub: ["web/kit", "wire", "triggers", "master-data", "readers", "mapping", "sql", "support"],
  wire: ["support"],
  sql: ["support"],
  support: [],
};

/** Files that no other file imports: executables, package exports, worker threads. */
const ENTRANCES = [
  "src/main.ts",
  "src/web/explorer/main.ts",
  "src/web/console/main.ts",
  "src/index.ts",
  "src/mapping/mapper.ts",
  "src/authoring/kit/index.ts",
  "src/wire/index.ts",
  "src/workers/host-main.ts",
  "src/workers/host-thread.ts",
  "src/hub/calculated/engines/r/webr-watchdog.ts",
  ...sources.filter((file) => /(^|[/-])worker\.ts$/.test(file)),
];

const BANNED: readonly { call: RegExp; instead: string; except?: RegExp }[] = [
  { call: /\bconsole\.\w+\(/, instead: "the log, or print() of src/cli/output.ts" },
  {
    call: /\bDate\.now\(\)|new Date\(\)/,
    instead: "the clock that the component is given (src/support/clock.ts)",
    except: /^src\/support\/clock\.ts$/,
  },
  {
    call: /process\.env\b/,
    instead: "an option",
    // `host-main.ts` keeps variables that only the runtime needs from its threads, which keep one from mappers.
    except: /^src\/(main|config\/document|workers\/host-(main|thread))\.ts$/,
  },
  {
    call: /\bkind [=!]== "(sqlite|postgres)"/,
    instead: "what the ledger can do (src/ledger/options.ts, src/ledger/open.ts)",
    except: /^src\/(ledger|hub|config\/hub-config\.ts)/,
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

/** Two or more states one after the other: in an array or a set, in a list of SQL, or compared in turn. */
const STATE_LIST = (() => {
  const states = [...ALL_RUN_STATES, ...ALL_BATCH_STATES, ...Object.keys(ARRIVAL_STATES)].join("|");
  const state = `(["'])(?:${states})`;
  const list = `[[(]\\s*(?:["']\\w+["'],\\s*)*${state}\\1,\\s*(?:["']\\w+["'],\\s*)*["'](?:${states})["']`;
  const compared = `=== "(?:${states})" \\|\\| [\\w.]+ === "(?:${states})"`;
  return new RegExp(`${list}|${compared}`);
})();

describe("the import table", () => {
  it.each(sources)("%s imports only what its place permits", (file) => {
    expect(importsOf(file).filter((target) => !allowed(file, target))).toEqual([]);
  });
});

describe("every source file", () => {
  it("is reachable from an entrance", () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const target of importsOf(file)) visit(target);
    };
    for (const entrance of ENTRANCES) visit(entrance);
    // Types of the bundler, which nobody imports.
    for (const types of globSync("src/web/*/stylesheets.d.ts", { cwd: root })) reached.add(types);
    for (const generator of globSync("config/*.ts", { cwd: root })) visit(generator);
    expect(sources.filter((file) => !reached.has(file))).toEqual([]);
  });

  it.each(sources)("%s makes no banned call", (file) => {
    const text = withoutComments(readFileSync(join(root, file), "utf8"));
    const found = BANNED.filter(({ call, except }) => call.test(text) && !except?.test(file));
    expect(found.map(({ call, instead }) => `${call.source}: use ${instead}`)).toEqual([]);
  });

  it.each(sources.filter((file) => !file.startsWith("src/states/") && !file.startsWith("src/hub/")))(
    "%s names no list of states, which src/states/ derives",
    (file) => {
      const text = withoutComments(readFileSync(join(root, file), "utf8"));
      expect(STATE_LIST.exec(text)?.[0] ?? null).toBeNull();
    },
  );

  it("has at most 700 lines", () => {
    const long = sources.filter((file) => readFileSync(join(root, file), "utf8").split("\n").length > FILE_LINES_MAX);
    expect(long).toEqual([]);
  });

  it("stands in a folder of at most 40 files", () => {
    const counts = Map.groupBy(sources, (file) => dirname(file));
    expect([...counts].filter(([, files]) => files.length > 40).map(([folder]) => folder)).toEqual([]);
  });

  it("keeps main under 50 lines", () => {
    expect(readFileSync(join(root, "src/main.ts"), "utf8").split("\n").length).toBeLessThan(50);
  });
});

describe("the documentation", () => {
  const pages = [...globSync(["docs/**/*.md", "mappers/*/README.md", "*.md"], { cwd: root })].sort();

  it.each(pages)("%s names files that are there", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const named = [...text.matchAll(/`((?:src|test|config|bench|mappers|samples|docs)\/[\w./-]*)`/g)].map(
      ([, path = ""]) => path,
    );
    // The anchor of a link is cut off.
    const linked = [...text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)[^)]*\)/g)].map(([, path = ""]) =>
      relative(root, resolve(root, dirname(page), path)),
    );
    // The tutorial creates a mapper of this name.
    const meant = [...named, ...linked].filter((path) => !path.startsWith("mappers/acme/"));
    expect(meant.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

describe("a measure that may only shrink", () => {
  it.each(MEASURES)("has grown in no file: $name", (measure) => {
    const { grown, shrunk } = compare(readRatchet()[measure.name] ?? {}, countsOf(measure));
    if (shrunk.length > 0)
      process.stderr.write(
        `tidy: fewer ${measure.name} than permitted in ${shrunk.length} files; \`npm run ratchet\` lowers the limits\n`,
      );
    const words = grown.map(({ file, permitted, count }) => {
      const places = measure.find(textOf(file), file).map((place) => `  ${file}:${place}`);
      return [`${measure.name} of ${file}: ${permitted} permitted, ${count} found`, ...places].join("\n");
    });
    expect(words).toEqual([]);
  });

  it("lets files be moved and split, but not grow together", () => {
    expect(compare({ "a.ts": 3 }, { "b.ts": 2, "c.ts": 1 }).grown).toEqual([]);
    expect(compare({ "a.ts": 3 }, { "b.ts": 4 }).grown).toHaveLength(1);
    expect(compare({ "a.ts": 3 }, { "a.ts": 4 }).grown).toHaveLength(1);
    expect(compare({ "a.ts": 3 }, { "a.ts": 2, "b.ts": 1 }).grown).toHaveLength(1);
  });

  it("finds private words in comments, texts and names", () => {
    const found = (text: string) => bannedWordsIn(text).map((one) => one.found);
    expect(found("/** What is told. */\nconst partyOf = 1;")).toEqual(["party", "told", "/** What"]);
    expect(found("// Polls the drop again, and reports the result.")).toEqual([]);
  });
});

describe("every file", () => {
  it("is named by a noun, not by a form in -ing", () => {
    const files = globSync(
      ["src/**/*.*", "test/**/*.ts", "bench/**/*.ts", "config/*.*", "mappers/**/*.*", "docs/**/*.*"],
      { cwd: root },
    );
    // Databases record the names of applied migrations, which therefore stay.
    const named = files.filter((file) => !file.includes("/migrations/"));
    expect(named.filter((file) => /ing(\.\w+)+$/.test(file)).sort()).toEqual([]);
  });
});

describe("mapper folders", () => {
  const folders = readdirSync(join(root, "mappers")).filter((name) =>
    statSync(join(root, "mappers", name)).isDirectory(),
  );
  // Folders that begin with an underscore hold code that several mappers share.
  const mappers = folders.filter((name) => !name.startsWith("_"));

  it.each(mappers)("%s has a mapper, a README and cases with input and expectation", (name) => {
    const folder = join(root, "mappers", name);
    expect(existsSync(join(folder, "mapper.ts"))).toBe(true);
    expect(existsSync(join(folder, "README.md"))).toBe(true);
    const cases = readdirSync(join(folder, "cases"));
    expect(cases.length).toBeGreaterThan(0);
    for (const one of cases) {
      const files = readdirSync(join(folder, "cases", one));
      expect(files.some((file) => file.startsWith("input"))).toBe(true);
      expect(files.some((file) => file.startsWith("expected"))).toBe(true);
    }
  });

  it.each(folders)("%s imports only the public contract, and code that mappers share", (name) => {
    for (const file of globSync(`mappers/${name}/*.ts`, { cwd: root })) {
      const foreign = importWords(readFileSync(join(root, file), "utf8")).filter(
        (word) => /^\.\.\/(?!_[a-z]+\/)/.test(word) || /^headgate(?!\/mapper$)/.test(word),
      );
      expect(foreign).toEqual([]);
    }
  });

  it.each(folders)("%s has no file of more than 700 lines", (name) => {
    const long = globSync(`mappers/${name}/*.ts`, { cwd: root }).filter(
      (file) => readFileSync(join(root, file), "utf8").split("\n").length > FILE_LINES_MAX,
    );
    expect(long).toEqual([]);
  });
});

function allowed(file: string, target: string): boolean {
  const from = relative("src", file);
  const to = relative("src", target);
  const place = placeOf(from);
  if (placeOf(to) === place && place !== from) return true;
  return (MAY_IMPORT[place] ?? []).some((other) => to === other || to.startsWith(`${other}/`));
}

function placeOf(path: string): string {
  return path.split("/")[0] ?? path;
}

/**
 * Project files that a file imports, relative to the root; also those that only `new URL("…",
 * import.meta.url)` names.
 */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  return importWords(text)
    .filter((word) => word.startsWith("."))
    .map((word) => relative(root, resolve(join(root, dirname(file)), word)));
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
