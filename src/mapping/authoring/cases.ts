/**
 * Golden cases of mappers: `cases/<case>/` holds `input.<ext>`, optionally `settings.yaml` and `lookups/`, and
 * `expected.json` (the elements of all batches) or `expected.err` (code, message and place). Run by the tests here and
 * by `headgate mapper test`.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, parse as parsePath } from "node:path";
import { parse } from "yaml";
import { unlessMissing } from "#core/errors.ts";
import { conflictWords, type LookupFile, lookupFile, type MapResult } from "../contract.ts";
import { loadMapper } from "../load-mapper.ts";
import { mapFile } from "../map-file.ts";
import { digestMapper } from "../mapper-files.ts";
import { createMemorySink } from "../segment/memory-sinks.ts";
import { withFixedClock } from "./kit/map-text.ts";

/** One batch holds all, so that the readings of a target are never in two elements. */
export const CASE_LIMITS = { pointsMax: 1_000_000, bytesMax: 256_000_000 };

export interface CaseOutcome {
  readonly name: string;
  /** The mapper's result for the input, in the form of the expected file. */
  readonly actual: unknown;
  /** The expected result; undefined when there is no expected file. */
  readonly expected: unknown;
  /** Name of the file for `actual`. */
  readonly file: "expected.json" | "expected.err";
  /** Readings of the result; null when the file failed. */
  readonly points: number | null;
}

export interface CaseSample {
  readonly path: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  readonly fileName?: string;
  readonly expectsReadings: boolean;
  readonly hasLookups: boolean;
}

/** Settings of one case: metadata, and under `$` the settings of the run (`$rows`, `$fileName`, `$lookups`). */
interface CaseSettings {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  readonly fileName: string | undefined;
  /** Options of the tables in `lookups/`, by their names: `key`, `delimiter`, `encoding`, `sheet`. */
  readonly lookups: Readonly<Record<string, Partial<LookupFile>>>;
}

/** Input and settings of a case, for other tests. */
export async function caseSample(modulePath: string, name: string): Promise<CaseSample> {
  const folder = join(dirname(modulePath), "cases", name);
  const files = await readdir(folder);
  const input = files.find((file) => file.startsWith("input.")) ?? "input";
  const { metadata, rows, fileName } = await readSettings(folder, files);
  return {
    path: join(folder, input),
    settings: metadata,
    rows,
    ...(fileName === undefined ? {} : { fileName }),
    expectsReadings: files.includes("expected.json"),
    hasLookups: files.includes("lookups"),
  };
}

/** Whether the case expects a mapped file without readings. */
export async function expectsNoReadings(modulePath: string, name: string): Promise<boolean> {
  const path = join(dirname(modulePath), "cases", name, "expected.json");
  const expected: unknown = JSON.parse(await unlessMissing(readFile(path, "utf8"), "null"));
  const elements: unknown = Array.isArray(expected) ? expected : Object(expected).elements;
  return Array.isArray(elements) && elements.length === 0;
}

/** `casesOf` is the module whose folder holds the case, when the mapper runs from a copy. */
export async function runCase(modulePath: string, name: string, casesOf = modulePath): Promise<CaseOutcome> {
  const folder = join(dirname(casesOf), "cases", name);
  const files = await readdir(folder);
  const input = files.find((file) => file.startsWith("input."));
  if (input === undefined) throw new Error(`the case ${folder} has no input file`);
  const settings = await readSettings(folder, files);
  const sink = createMemorySink();
  const request = {
    inputPath: join(folder, input),
    fileName: settings.fileName ?? input,
    filePath: settings.fileName ?? input,
    mapper: await loadMapper(modulePath, await digestMapper(modulePath)),
    settings: settings.metadata,
    rows: settings.rows,
    limits: CASE_LIMITS,
    lookups: await caseLookups(folder, files, settings.lookups),
    sink,
    signal: new AbortController().signal,
  };
  const result = await withFixedClock(() => mapFile(request));
  const { actual, file } = caseOutcome(result, sink.bodies);
  const expectedFile = files.find((candidate) => /^expected\.(?:json|err)$/.test(candidate));
  const expected =
    expectedFile === undefined ? undefined : JSON.parse(await readFile(join(folder, expectedFile), "utf8"));
  return { name, actual, expected, file, points: result.status === "mapped" ? result.points : null };
}

/** Replaces the expected result of the case by the current result of the mapper. */
export async function updateCase(
  modulePath: string,
  outcome: Pick<CaseOutcome, "name" | "actual" | "file">,
): Promise<void> {
  const folder = join(dirname(modulePath), "cases", outcome.name);
  const other = outcome.file === "expected.json" ? "expected.err" : "expected.json";
  await rm(join(folder, other), { force: true });
  await writeFile(join(folder, outcome.file), `${JSON.stringify(outcome.actual, null, 2)}\n`);
}

/** The result of mapping with `CASE_LIMITS`, in the form of the expected file. */
export function caseOutcome(result: MapResult, bodies: readonly Buffer[]): Pick<CaseOutcome, "actual" | "file"> {
  return {
    actual: outcomeOf(result, bodies),
    file: result.status === "mapped" ? "expected.json" : "expected.err",
  };
}

function outcomeOf(result: MapResult, bodies: readonly Buffer[]): unknown {
  const rejected = result.rejected.map(({ message, place }) => defined({ message, ...place }));
  if (result.status === "failed") {
    const { code, message, hint, place } = result.reason;
    return defined({
      code,
      message,
      hint,
      place: place && defined({ ...place }),
      rejectedCount: result.rejectedCount,
    });
  }
  const elements: unknown[] = bodies.flatMap((body) => JSON.parse(body.toString("utf8")) as unknown[]);
  const { superseded, conflicts, findings } = result;
  if (rejected.length === 0 && superseded === 0 && findings.length === 0) return elements;
  const found = conflicts === undefined ? {} : { conflicts: conflicts.shown.map(conflictWords) };
  return { elements, superseded, ...found, ...(findings.length === 0 ? {} : { findings }), rejected };
}

/** Without undefined fields, as in JSON. */
function defined(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

async function readSettings(folder: string, files: readonly string[]): Promise<CaseSettings> {
  const text = files.includes("settings.yaml") ? await readFile(join(folder, "settings.yaml"), "utf8") : "";
  const all: Record<string, unknown> = parse(text) ?? {};
  const metadata = Object.fromEntries(Object.entries(all).filter(([key]) => !key.startsWith("$")));
  const { $rows, $fileName, $lookups } = all;
  return {
    metadata,
    rows: $rows === "lenient" ? "lenient" : "strict",
    fileName: typeof $fileName === "string" ? $fileName : undefined,
    lookups: typeof $lookups === "object" && $lookups !== null ? { ...$lookups } : {},
  };
}

/**
 * The tables of a case, `lookups/NAME.csv` or `.xlsx`, keyed by their first column unless the settings name another.
 */
async function caseLookups(
  folder: string,
  files: readonly string[],
  facts: CaseSettings["lookups"],
): Promise<LookupFile[]> {
  if (!files.includes("lookups")) return [];
  const tables = await readdir(join(folder, "lookups"));
  return tables.sort().map((table) => {
    const { name } = parsePath(table);
    return lookupFile({
      ...(Object.hasOwn(facts, name) ? facts[name] : {}),
      name,
      path: join(folder, "lookups", table),
    });
  });
}
