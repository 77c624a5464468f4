/** `headgate mapper`: lists mappers, and runs their golden cases. */
import { url as debuggerUrl } from "node:inspector";
import { dirname, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { isDeepStrictEqual } from "node:util";
import jsonPatch from "fast-json-patch";
import { stringify } from "yaml";
import { ConfigError, RejectedError, wordsOf } from "#core/errors.ts";
import { counted } from "#core/text.ts";
import { listCases } from "#mapping/authoring/case-files.ts";
import { caseSample, expectsNoReadings, runCase, updateCase } from "#mapping/authoring/cases.ts";
import { digestMapper, loadMapper, mapPath, mapperContract } from "#mapping/authoring/kit/index.ts";
import type { Proposal } from "#mapping/authoring/sketch/propose.ts";
import type { SampleTable } from "#mapping/authoring/sketch/sample.ts";
import { sketchFile } from "#mapping/authoring/sketch/sketch.ts";
import { emptySource } from "#mapping/authoring/sketch/source.ts";
import { mustBeNew, type WrittenMapper, writeMapper } from "#mapping/authoring/sketch/write.ts";
import type { CatalogueEntry } from "#mapping/contract.ts";
import { locateMapper } from "#mapping/mapper-files.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { createInspector, type Inspector } from "#mapping/workers/inspector.ts";
import type { MapperModule } from "#mapping/workers/messages.ts";
import { ianaZone } from "#wire/zones.ts";
import { addCommand, type CommandFrame } from "../command.ts";
import { mustBeFile } from "../must-be-file.ts";
import { print, printError, printJson, printTable, styled } from "../output.ts";
import { mapperFolders, noteCollision, requireMapper } from "./map.ts";

interface ListOptions {
  readonly folder: readonly string[];
  readonly json?: boolean;
}

interface TestOptions extends ListOptions {
  readonly update?: boolean;
}

const SHOWN_MAX = 20;
const VALUE_MAX = 120;
const FOLDER_HELP = "folder that holds mappers, before ./mappers and the bundled ones; may be repeated";

export function addMapper({ command, stop, action }: CommandFrame): void {
  const mapper = command("mapper", ["headgate mapper list"]);
  addCommand(mapper, "list", "The mappers that were found, with their settings.", [
    "headgate mapper list --folder ./mappers",
  ])
    .option("--folder <path>", FOLDER_HELP, collect, [])
    .option("--json", "as JSON, with the JSON Schema of the settings")
    .action(action((options: ListOptions) => list(options)));
  addCommand(mapper, "new <name>", "Creates a mapper from a sample file, with its first case.", [
    "headgate mapper new acme-hourly --sample acme_2026-03.csv --time-zone Europe/Brussels",
  ])
    .option("--sample <file>", "sample file for the mapper; asked for on a terminal")
    .option("--time-zone <zone>", "zone of dates that carry none; asked for on a terminal")
    .option("--folder <path>", "folder of mappers to write it to", "./mappers")
    .option("--json", "the created files, as JSON")
    .action(action((name: string, options: NewOptions) => newMapper(name, options, stop)));
  addCommand(
    mapper,
    "test [names...]",
    "Runs the golden cases of mappers, and the rules for every mapper; of all mappers when none is named.",
    ["headgate mapper test acme-hourly", "headgate mapper test acme-hourly --update"],
  )
    .option("--folder <path>", FOLDER_HELP, collect, [])
    .option("--update", "replace the expectations of the cases by the current results")
    .option("--json", "as JSON")
    .action(action((names: string[], options: TestOptions) => test(names, options)));
}

function collect(folder: string, before: readonly string[]): readonly string[] {
  return [...before, folder];
}

async function list(options: ListOptions): Promise<number> {
  const entries = await createCatalogue(mapperFolders(options.folder)).list();
  if (options.json === true) {
    printJson(
      entries.map(({ identity, summary, modulePath, settingsSchema }) => ({
        ...identity,
        summary,
        modulePath,
        settingsSchema,
      })),
    );
    return 0;
  }
  printTable(
    ["mapper", "version", "settings", "what"],
    entries.map((entry) => [
      entry.identity.name,
      entry.identity.version,
      settingNames(entry).join(", "),
      entry.summary,
    ]),
  );
  return 0;
}

function settingNames(entry: CatalogueEntry): readonly string[] {
  const schema = entry.settingsSchema as {
    properties?: Record<string, unknown>;
    required?: readonly string[];
  };
  return Object.keys(schema.properties ?? {}).map((name) =>
    schema.required?.includes(name) === true ? `${name}*` : name,
  );
}

interface TestedCase {
  readonly mapper: string;
  readonly case: string;
  readonly result: "ok" | "differs" | "updated" | "broken";
  /** The fault, or what a person should know, in words. */
  readonly detail?: string;
}

const NO_READINGS = "it gives no readings: is the case about a file that has none?";
const NO_SAMPLE = "the rules for every mapper were not tried: no case without tables gives readings and refuses no row";

/** A mapper that ends this process is reported as a failure. */
async function test(names: readonly string[], options: TestOptions): Promise<number> {
  let at: Progress = { mapper: "", done: 0, all: 0 };
  const reportExit = () => {
    process.exitCode = 1;
    printError(
      new RejectedError("HG-MAP-011", {
        operation: "test mapper",
        subject: at.mapper,
        message: `it ended the process, or waits for ever, when ${at.done} of ${at.all} cases had been tested`,
      }),
    );
  };
  process.once("exit", reportExit);
  try {
    return await testAll(names, options, (progress) => {
      at = progress;
    });
  } finally {
    process.off("exit", reportExit);
  }
}

interface Progress {
  readonly mapper: string;
  /** Golden cases, of all mappers. */
  readonly done: number;
  readonly all: number;
}

async function testAll(
  names: readonly string[],
  options: TestOptions,
  begin: (progress: Progress) => void,
): Promise<number> {
  const catalogue = createCatalogue(mapperFolders(options.folder));
  const entries =
    names.length === 0
      ? await catalogue.list()
      : await Promise.all(names.map((name) => requireMapper(catalogue, name)));
  const results: TestedCase[] = [];
  const inspector = createInspector();
  await using _ = { [Symbol.asyncDispose]: () => inspector.close() };
  const cases = await Promise.all(entries.map(({ modulePath }) => listCases(modulePath)));
  const all = cases.flat().length;
  let done = 0;
  for (const [nth, { identity, modulePath }] of entries.entries()) {
    await noteCollision(mapperFolders(options.folder), identity.name);
    const report = (one: Omit<TestedCase, "mapper">) => {
      results.push({ mapper: identity.name, ...one });
      if (options.json !== true) printTested(identity.name, one);
    };
    const walled = (name: string) => caseFault(inspector, { modulePath, digest: identity.digest }, name);
    for (const name of cases[nth] ?? []) {
      begin({ mapper: identity.name, done, all });
      report(await testCase(modulePath, name, options.update === true, walled));
      done += 1;
    }
    begin({ mapper: identity.name, done, all });
    const rules = await testContract(modulePath);
    for (const one of rules) report(one);
    if (rules.length === 0 && options.json !== true) print(`        ${identity.name}: ${NO_SAMPLE}`);
  }
  if (options.json === true) printJson(results);
  else print(testedSummary(results));
  return results.every((one) => one.result === "ok" || one.result === "updated") ? 0 : 1;
}

/**
 * A case runs behind the wall of the gateway, and in this process where it fails there, to show the difference; with a
 * debugger in this process alone. `walled` gives the fault behind the wall.
 */
async function testCase(
  modulePath: string,
  name: string,
  update: boolean,
  walled: (name: string) => Promise<string | null>,
): Promise<Omit<TestedCase, "mapper">> {
  const fault = debuggerUrl() === undefined ? await walled(name) : null;
  if (fault === null && debuggerUrl() === undefined) {
    const note = (await expectsNoReadings(modulePath, name)) ? { detail: NO_READINGS } : {};
    return { case: name, result: "ok", ...note };
  }
  const outcome = await runCase(modulePath, name);
  const note = outcome.points === 0 ? { detail: NO_READINGS } : {};
  const isExpected = isDeepStrictEqual(outcome.actual, outcome.expected);
  if (isExpected && fault === null) return { case: name, result: "ok", ...note };
  if (isExpected)
    return { case: name, result: "broken", detail: `with the rights that the gateway gives it: ${fault}` };
  if (update) {
    await updateCase(modulePath, outcome);
    const left = debuggerUrl() === undefined ? await walled(name) : null;
    if (left === null) return { case: name, result: "updated", ...note };
    return { case: name, result: "broken", detail: `with the rights that the gateway gives it: ${left}` };
  }
  const detail = differences(outcome.expected, outcome.actual).join("\n");
  return { case: name, result: "differs", detail };
}

async function caseFault(inspector: Inspector, module: MapperModule, name: string): Promise<string | null> {
  try {
    return await inspector.caseFault(module, module.modulePath, name);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.message;
    throw thrown;
  }
}

/**
 * Checks the rules for every mapper with the first case that gives readings and refuses nothing; without such a case
 * there is no result.
 */
async function testContract(modulePath: string): Promise<Omit<TestedCase, "mapper">[]> {
  const mapper = await loadMapper(modulePath, await digestMapper(modulePath));
  for (const name of await listCases(modulePath)) {
    const sample = await caseSample(modulePath, name);
    if (!sample.expectsReadings || sample.hasLookups) continue;
    const { points, rejectedCount } = await mapPath(mapper, sample.path, sample);
    if (points === 0 || rejectedCount > 0) continue;
    const found: Omit<TestedCase, "mapper">[] = [];
    for (const check of mapperContract(mapper, sample))
      found.push(
        await check.run().then(
          () => ({ case: `(${check.name})`, result: "ok" as const }),
          (thrown: unknown) => ({
            case: `(${check.name})`,
            result: "broken" as const,
            detail: wordsOf(thrown),
          }),
        ),
      );
    return found;
  }
  return [];
}

const TESTED_STYLES = { ok: "green", updated: "yellow", differs: "red", broken: "red" } as const;

function printTested(mapper: string, one: Omit<TestedCase, "mapper">): void {
  print(`${styled(TESTED_STYLES[one.result], one.result.padEnd(7))} ${mapper}/${one.case}`);
  for (const line of one.detail?.split("\n") ?? []) print(`        ${line}`);
}

function testedSummary(results: readonly TestedCase[]): string {
  const count = (result: TestedCase["result"]) => results.filter((one) => one.result === result).length;
  const words = (["ok", "updated", "differs", "broken"] as const).flatMap((result) =>
    count(result) === 0 ? [] : [`${count(result)} ${result}`],
  );
  return `cases ${results.length}: ${words.join(", ") || "none"}`;
}

// `headgate mapper new`: creates a mapper from a sample file, with its first case.

interface NewOptions {
  readonly folder: string;
  readonly sample?: string;
  readonly timeZone?: string;
  readonly json?: boolean;
}

async function newMapper(name: string, options: NewOptions, stop: AbortSignal): Promise<number> {
  const folder = resolve(options.folder);
  await mustBeNew(folder, name);
  await mustNotHide(name);
  const ask = createAsker(options.json === true, stop);
  try {
    const path = options.sample ?? (await ask("A sample of the files (its path; empty for none): "));
    const sketch = path === undefined || path === "" ? null : await sketchSample(name, path, options, ask);
    const written = await writeMapper({
      name,
      folder,
      source: sketch?.proposal.source ?? emptySource(name),
      sample:
        sketch === null ? null : { path: sketch.path, reader: sketch.table.reader, settings: sketch.proposal.settings },
    });
    if (options.json === true)
      printJson({
        modulePath: written.modulePath,
        case: written.first,
        declarative: sketch?.proposal.declarative ?? null,
        assumed: sketch?.proposal.assumed ?? [],
      });
    else printNextSteps(name, written, sketch?.proposal ?? null);
    return 0;
  } finally {
    ask.close();
  }
}

/** A mapper of the same name would replace the bundled one, for every trigger that names it. */
async function mustNotHide(name: string): Promise<void> {
  if ((await locateMapper([BUNDLED_FOLDER], name)) === null) return;
  throw new ConfigError("HG-CLI-001", {
    operation: "make mapper",
    subject: name,
    message: `a mapper ${name} comes with Headgate, and the new one would replace it`,
    hint: "Choose another name, such as that of the vendor.",
  });
}

interface Sketch {
  readonly path: string;
  readonly table: SampleTable;
  readonly proposal: Proposal;
}

async function sketchSample(name: string, path: string, options: NewOptions, ask: Asker): Promise<Sketch> {
  await mustBeFile("read sample", path);
  const full = resolve(path);
  const hint = "Leave the sample out (`headgate mapper new NAME`) for an empty mapper to begin with.";
  const { table, proposal } = await sketchFile(name, { path: full, subject: full, hint }, async (columns) => {
    const timeZone =
      options.timeZone ?? (await ask("The dates carry no time zone. Their zone (such as Europe/Brussels): "));
    if (timeZone !== undefined && ianaZone(timeZone) !== undefined) return timeZone;
    throw noZone(path, timeZone, columns);
  });
  if (proposal === null) throw noZone(path, undefined, []);
  return { path: full, table, proposal };
}

function noZone(subject: string, timeZone: string | undefined, columns: readonly string[]): ConfigError {
  return new ConfigError("HG-CLI-001", {
    operation: "make mapper",
    subject,
    message:
      timeZone === undefined || timeZone === ""
        ? `the dates in ${columns.join(" and ")} carry no time zone`
        : `${timeZone} is neither an IANA nor a Windows time zone`,
    hint:
      "Add --time-zone with the zone that the file is written in: a wrong assumption would shift values " + "silently.",
  });
}

interface Asker {
  /** Undefined when there is no terminal. */
  (question: string): Promise<string | undefined>;
  close(): void;
}

function createAsker(isQuiet: boolean, signal: AbortSignal): Asker {
  if (isQuiet || !process.stdin.isTTY || !process.stdout.isTTY)
    return Object.assign(async () => undefined, { close: () => undefined });
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ask = async (question: string) => (await lines.question(question, { signal })).trim();
  return Object.assign(ask, { close: () => lines.close() });
}

function printNextSteps(name: string, { modulePath, first }: WrittenMapper, proposal: Proposal | null): void {
  const shown = (path: string) => relative(process.cwd(), path) || ".";
  print(`${styled("green", "made")} ${shown(modulePath)}`);
  if (first !== null) {
    const failed = first.expected !== "expected.json";
    print(
      `${styled(failed ? "yellow" : "green", "case")} ${shown(first.folder)}: ${outcomeWords(first.outcome, failed)}`,
    );
  }
  for (const one of proposal?.assumed ?? []) print(`${styled("yellow", "check")} ${one}`);
  if (proposal?.declarative !== null && proposal?.declarative !== undefined) {
    const { mapper, settings } = proposal.declarative;
    print(`\nThe bundled mapper ${mapper} may read these files without code, by the trigger's settings:\n`);
    print(stringify({ mapper, metadata: settings }).trimEnd().replaceAll(/^/gm, "  "));
  }
  print("\nNext:");
  if (first !== null) {
    const input = shown(dirname(first.folder));
    print(`  check ${input}/first/${first.expected}: does it match the file?`);
  }
  print(`  headgate map FILE --mapper ${name} --watch    # while you edit ${shown(modulePath)}`);
  print(`  headgate mapper test ${name}`);
}

function outcomeWords(outcome: unknown, failed: boolean): string {
  if (failed) return `not mapped yet: ${(outcome as { readonly message?: string }).message ?? "see the case"}`;
  const elements = (Array.isArray(outcome) ? outcome : (outcome as { elements: unknown[] }).elements) as {
    readonly data: readonly unknown[];
  }[];
  const points = elements.reduce((sum, { data }) => sum + data.length, 0);
  return `${counted(points, "point")} of ${counted(elements.length, "target")}`;
}

// Lists the differences of two JSON values, by path.

/**
 * A line for each difference, such as `/readings/3/value: expected 12.5, found 13`; the first of many, and the number
 * of the others.
 */
export function differences(expected: unknown, actual: unknown): readonly string[] {
  const whole = [`expected ${shown(expected)}`, `found    ${shown(actual)}`];
  if (!isContainer(expected) || !isContainer(actual) || Array.isArray(expected) !== Array.isArray(actual)) return whole;
  const places = jsonPatch.compare(expected, actual).toReversed();
  const lines = places.slice(0, SHOWN_MAX).map((place) => {
    const before = place.op === "add" ? undefined : jsonPatch.getValueByPointer(expected, place.path);
    const after = "value" in place ? place.value : undefined;
    return `${place.path}: expected ${shown(before)}, found ${shown(after)}`;
  });
  const more = places.length - lines.length;
  return more > 0 ? [...lines, `… and ${more} more`] : lines;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}
