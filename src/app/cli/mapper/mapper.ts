/** `headgate mapper`: lists mappers, and runs their golden cases. */
import { url as debuggerUrl } from "node:inspector";
import { isDeepStrictEqual } from "node:util";
import { ConfigError, RejectedError, wordsOf } from "#core/errors.ts";
import { listCases } from "#mapping/authoring/case-files.ts";
import { caseSample, expectsNoReadings, runCase, updateCase } from "#mapping/authoring/cases.ts";
import { digestMapper, loadMapper, mapPath, mapperContract } from "#mapping/authoring/kit/index.ts";
import type { CatalogueEntry } from "#mapping/contract.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { createInspector, type Inspector } from "#mapping/workers/inspector.ts";
import type { MapperModule } from "#mapping/workers/messages.ts";
import { addCommand, type CommandFrame } from "../command.ts";
import { differences } from "../differences.ts";
import { print, printError, printJson, printTable, styled } from "../output.ts";
import { mapperFolders, noteCollision, requireMapper } from "./map.ts";
import { type NewOptions, newMapper } from "./mapper-new.ts";

interface ListOptions {
  readonly folder: readonly string[];
  readonly json?: boolean;
}

interface TestOptions extends ListOptions {
  readonly update?: boolean;
}

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
