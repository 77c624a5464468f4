/** Measures of the sources and pages of the project that may only shrink: see `ratchet.json`. */
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { bannedWordsIn } from "./words.ts";

export const ROOT = resolve(import.meta.dirname, "../..");
const COLUMNS_MAX = 120;
const FUNCTION_LINES_MAX = 70;
const FILE_LINES_MAX = 700;

/** Counts by file; a file without an entry has none. */
export type Counts = Readonly<Record<string, number>>;

/** `npm run generate` writes these pages from the sources, which are measured themselves. */
const GENERATED = new Set(
  ["configuration", "errors", "hub-configuration", "metrics", "specification-coverage"].map(
    (page) => `docs/${page}.md`,
  ),
);

const SOURCES = ["src/**/*.ts", "mappers/*/*.ts"];
const PAGES = ["docs/**/*.md", "mappers/*/README.md", "*.md"];
/** What users read of former versions stays as it was. */
const HISTORY = "CHANGELOG.md";

export interface Measure {
  readonly name: string;
  readonly patterns: readonly string[];
  /** Places in a file that should not be there, in words. */
  readonly find: (text: string, file: string) => readonly string[];
}

export const MEASURES: readonly Measure[] = [
  {
    name: "words",
    patterns: [...SOURCES, ...PAGES],
    find: (text) => bannedWordsIn(text).map(({ line, found, say }) => `${line}: "${found}": say ${say}`),
  },
  {
    name: "columns",
    patterns: [...SOURCES, ...PAGES, "test/**/*.ts", "bench/**/*.ts", "config/*.ts"],
    find: (text, file) => wideLines(text, file).map((line) => `${line}: wider than ${COLUMNS_MAX} columns`),
  },
  {
    name: "functions",
    patterns: SOURCES,
    find: (text) =>
      longFunctions(text).map(
        ({ line, lines }) => `${line}: a function of ${lines} lines; at most ${FUNCTION_LINES_MAX}`,
      ),
  },
  {
    name: "files",
    patterns: SOURCES,
    find: (text) =>
      text
        .split("\n")
        .slice(FILE_LINES_MAX)
        .map((_line, at) => `${FILE_LINES_MAX + at + 1}: beyond ${FILE_LINES_MAX} lines`),
  },
];

export function countsOf({ patterns, find }: Measure): Counts {
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).filter(isMeasured);
  const counted = [...new Set(files)].sort().map((file) => [file, find(textOf(file), file).length] as const);
  return Object.fromEntries(counted.filter(([, count]) => count > 0));
}

export function textOf(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

function isMeasured(file: string): boolean {
  return !GENERATED.has(file) && file !== HISTORY;
}

/** In pages, tables and code blocks may be wide. */
function wideLines(text: string, file: string): readonly number[] {
  let isCode = false;
  return text.split("\n").flatMap((line, at) => {
    if (file.endsWith(".md") && line.trimStart().startsWith("```")) isCode = !isCode;
    const isFree = file.endsWith(".md") && (isCode || line.startsWith("|"));
    return !isFree && line.length > COLUMNS_MAX ? [at + 1] : [];
  });
}

const CONTROL = /^\s*(\} )?(if|for|while|switch|catch|else|do|try)\b/;
/** The formatter puts the end of a function at the indentation of its first line. */
const OPENS = /(\bfunction\b.*|=> |\)(: [^=]+)? )\{$/;

function longFunctions(text: string): readonly { readonly line: number; readonly lines: number }[] {
  const all = text.split("\n");
  return all.flatMap((line, at) => {
    if (!OPENS.test(line) || CONTROL.test(line)) return [];
    const indent = /^\s*/.exec(line)?.[0] ?? "";
    const length = all.slice(at + 1).findIndex((one) => one.startsWith(`${indent}}`));
    const body = all.slice(at, at + 2 + length).filter((one) => one.trim() !== "");
    return body.length > FUNCTION_LINES_MAX ? [{ line: at + 1, lines: body.length }] : [];
  });
}
