/** `headgate mapper`: the catalogue, and the golden cases. */
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { listCases, runCase, updateCase } from "../mapping/cases.ts";
import { createCatalogue } from "../mapping/catalogue.ts";
import type { CatalogueEntry } from "../mapping/mapping.ts";
import { ConfigError } from "../support/errors.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { print, printJson, printTable, styled } from "./output.ts";

interface ListOptions {
  readonly folder: readonly string[];
  readonly json?: boolean;
}

interface TestOptions extends ListOptions {
  readonly update?: boolean;
}

const FOLDER_HELP = "folder that holds mappers, beside the bundled ones; may be repeated";

export function addMapper({ program, action }: CommandFrame): void {
  const mapper = addCommand(program, "mapper", "Mappers: the plug-ins that turn files into readings.", [
    "headgate mapper list",
  ]);
  addCommand(mapper, "list", "The mappers that were found, with their settings.", [
    "headgate mapper list --folder ./mappers",
  ])
    .option("--folder <path>", FOLDER_HELP, collect, ["./mappers"])
    .option("--json", "as JSON, with the JSON Schema of the settings")
    .action(action((options: ListOptions) => list(options)));
  addCommand(mapper, "test [names...]", "Runs the golden cases of mappers; all when none is named.", [
    "headgate mapper test acme-hourly",
    "headgate mapper test acme-hourly --update",
  ])
    .option("--folder <path>", FOLDER_HELP, collect, ["./mappers"])
    .option("--update", "make the cases expect what the mapper makes of them now")
    .option("--json", "as JSON")
    .action(action((names: string[], options: TestOptions) => test(names, options)));
}

function collect(folder: string, before: readonly string[]): readonly string[] {
  return [...before, folder];
}

async function list(options: ListOptions): Promise<number> {
  const entries = await createCatalogue(options.folder.map((folder) => resolve(folder))).list();
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

async function test(names: readonly string[], options: TestOptions): Promise<number> {
  const catalogue = createCatalogue(options.folder.map((folder) => resolve(folder)));
  const entries =
    names.length === 0
      ? await catalogue.list()
      : await Promise.all(names.map((name) => mustFind(catalogue, name)));
  const results: { mapper: string; case: string; result: "ok" | "differs" | "updated" }[] = [];
  for (const { identity, modulePath } of entries) {
    for (const name of await listCases(modulePath)) {
      const outcome = await runCase(modulePath, name);
      const same = isDeepStrictEqual(outcome.actual, outcome.expected);
      if (!same && options.update === true) await updateCase(modulePath, outcome);
      const result = same ? "ok" : options.update === true ? "updated" : "differs";
      results.push({ mapper: identity.name, case: name, result });
      if (options.json === true) continue;
      print(`${styled(same ? "green" : "yellow", result.padEnd(7))} ${identity.name}/${name}`);
      if (result === "differs")
        print(`        expected ${shorten(outcome.expected)}\n        found    ${shorten(outcome.actual)}`);
    }
  }
  if (options.json === true) printJson(results);
  return results.every((one) => one.result !== "differs") ? 0 : 1;
}

async function mustFind(
  catalogue: ReturnType<typeof createCatalogue>,
  name: string,
): Promise<CatalogueEntry> {
  const entry = await catalogue.find(name);
  if (entry !== null) return entry;
  const known = (await catalogue.list()).map((one) => one.identity.name);
  throw new ConfigError("HG-MAP-001", {
    operation: "find mapper",
    subject: name,
    message: `there is no mapper ${name}; there are ${known.join(", ")}`,
  });
}

function shorten(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
