/** `headgate map`: maps one file, without a service. */

import { basename, dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, invalidOption, RejectedError } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import { counted, foundWords, placeWords } from "#core/text.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { MapperIdentity, MappingFinding, Reason, RejectedRow } from "#gateway/model.ts";
import {
  byAttention,
  type CatalogueEntry,
  conflictWords,
  findingWords,
  type LookupFile,
  lookupFile,
  type MapperCatalogue,
  type MapResult,
} from "#mapping/contract.ts";
import { locateMapper } from "#mapping/mapper-files.ts";
import { openDryRuns, WORKERS_DEFAULT } from "#mapping/workers/dry-run.ts";
import { type CommandFrame, optionalConfigOption } from "../command.ts";
import { mustBeFile } from "../must-be-file.ts";
import { settingsOption, shareOption } from "../option-values.ts";
import { print, printError, printJson, printTable, reasonLines, styled } from "../output.ts";

interface MapOptions {
  readonly mapper: string;
  readonly settings: string;
  readonly folder: readonly string[];
  readonly config?: string;
  readonly lookup: readonly string[];
  readonly name?: string;
  readonly lenient?: boolean;
  readonly rejectShare: string;
  readonly summary?: boolean;
  readonly json?: boolean;
  readonly watch?: boolean;
}

/** Large batches, so that the readings of a target are hardly ever printed in two parts. */
const LIMITS = { pointsMax: Number.MAX_SAFE_INTEGER, bytesMax: 64_000_000 };
const SHOWN = 20;
/** Readings came when the file was written already. */
const LATE = "HG-MAP-041";
/** Most of these come at once; in milliseconds. */
const LATE_MS = 50;

export function addMap({ command, stop, action }: CommandFrame): void {
  command("map", [
    "headgate map meters.csv --mapper standard",
    `headgate map meters.csv --mapper standard --settings '{"timeZone":"Europe/Brussels"}' --summary`,
    "headgate map tags.csv --mapper my-mapper --lookup meters=lookups/meters.csv",
  ])
    .requiredOption("-m, --mapper <name>", "name of the mapper (`headgate mapper list` shows them)")
    .option("-s, --settings <json>", "settings of the mapper, as a trigger's metadata would give them", "{}")
    .option(
      "--folder <path>",
      "folder that holds mappers, before ./mappers and the bundled ones; may be repeated",
      (folder, before: readonly string[]) => [...before, folder],
      [],
    )
    .addOption(optionalConfigOption("configuration of the gateway, for its lookups and folders of mappers"))
    .option(
      "--lookup <name=path>",
      "lookup table, by its first column, before those of the configuration; may be repeated",
      (given, before: readonly string[]) => [...before, given],
      [],
    )
    .option("--name <name>", "map as if the file had this name")
    .option("--lenient", "map the good rows and report the others")
    .option(
      "--reject-share <share>",
      "with --lenient: share of refused rows, from 0 to 1, above which nothing is mapped",
      "0.1",
    )
    .option("--summary", "print targets, counts, period and refused rows instead of the payload")
    .option("--json", "the summary as JSON")
    .option("--watch", "map again whenever the file or the mapper changes, with the summary unless --json is given")
    .action(
      action((file: string, options: MapOptions) =>
        options.watch === true ? watchMap(file, { summary: true, ...options }, stop) : map(file, options, stop),
      ),
    );
}

/** A fault is printed; the next change of a file maps again. */
async function watchMap(file: string, options: MapOptions, stop: AbortSignal): Promise<number> {
  const folders = foldersOf(options, await configOf(options));
  const { repeatOnChange } = await import("./file-watch.ts");
  await repeatOnChange(
    async () => {
      const modulePath = await locateMapper(folders, options.mapper);
      if (modulePath === null) return [resolve(file)];
      // Of a mapper in one file only that file is watched; of a mapper in a folder, the whole folder.
      return [resolve(file), /^mapper\.[jt]s$/.test(basename(modulePath)) ? dirname(modulePath) : modulePath];
    },
    async () => {
      print(styled("bold", `${basename(file)} by ${options.mapper}`));
      await map(file, options, stop).catch((thrown: unknown) => {
        if (!stop.aborted) printError(thrown);
      });
    },
    stop,
  );
  return 0;
}

async function map(file: string, options: MapOptions, signal: AbortSignal): Promise<number> {
  await mustBeFile("map", file);
  const settings = settingsOption(options.settings);
  const config = await configOf(options);
  const folders = foldersOf(options, config);
  const rejectShare = shareOption(options.rejectShare);
  const given = options.lookup.map(parseLookup);
  const runs = await openDryRuns({ workers: config?.workers ?? WORKERS_DEFAULT, folders });
  try {
    // The mapper is loaded here while its process starts, which has to come first: modules that load leave no turn.
    await runs.prepare(options.mapper);
    const mapper = await findMapper(folders, options.mapper);
    await noteCollision(folders, options.mapper);
    const job = {
      inputPath: resolve(file),
      fileName: options.name ?? basename(file),
      filePath: options.name ?? file,
      binding: {
        mapper,
        settings,
        rows: options.lenient === true ? ("lenient" as const) : ("strict" as const),
        rejectShare,
        limits: LIMITS,
      },
      lookups: [...given, ...(config?.lookups ?? []).map(lookupFile)],
    };
    const result = await runs.map({ job, note }, signal, async (mapped, { bodies }) => {
      await show(mapped, bodies(), options);
      return mapped;
    });
    if (result.status === "failed") throw refusal(file, mapper, result.reason);
    await sleep(LATE_MS);
    const [late] = runs.late();
    if (late !== undefined) throw refusal(file, mapper, { code: LATE, message: late, hint: REGISTER[LATE].hint });
    return 0;
  } finally {
    await runs.close();
  }
}

async function show(result: MapResult, bodies: AsyncIterable<Buffer>, options: MapOptions): Promise<void> {
  if (options.summary === true || options.json === true) return printSummary(result, options.json === true);
  if (result.status === "mapped") await printPayload(bodies);
  for (const line of findingLines(result.findings)) note(line);
  noteRefusals(result);
}

function refusal(file: string, mapper: MapperIdentity, reason: Reason): RejectedError {
  return new RejectedError("HG-CLI-006", {
    operation: "map",
    subject: file,
    message:
      `${placeWords(reason.place)}${reason.message}${foundWords(reason.message, reason.place)} [${reason.code}, ` +
      `mapper ${mapper.name} ${mapper.version}]`,
    ...(reason.hint === undefined ? {} : { hint: reason.hint }),
  });
}

/** Its modules are many, and most calls have none. */
async function configOf({ config }: MapOptions): Promise<GatewayConfig | undefined> {
  if (config === undefined) return undefined;
  return (await import("#gateway/config.ts")).loadGatewayConfig(config);
}

function foldersOf({ folder }: MapOptions, config: GatewayConfig | undefined): readonly string[] {
  return [...mapperFolders(folder), ...(config?.mappers.folders ?? [])];
}

/** Absolute: those that were named, and the usual one of the current folder after them. */
export function mapperFolders(named: readonly string[]): readonly string[] {
  return [...new Set([...named, "./mappers"].map((one) => resolve(one)))];
}

/** Says which of several mappers of one name is used. */
export async function noteCollision(folders: readonly string[], name: string): Promise<void> {
  const found = await Promise.all(folders.map((folder) => locateMapper([folder], name)));
  const [taken, ...others] = [...new Set(found.filter((path) => path !== null))];
  if (taken !== undefined && others.length > 0)
    note(`the mapper ${name} is that of ${taken}; there is another in ${others.join(" and ")}`);
}

async function findMapper(folders: readonly string[], name: string): Promise<MapperIdentity> {
  const { createCatalogue } = await import("#mapping/workers/catalogue.ts");
  const catalogue = createCatalogue(folders);
  try {
    return (await requireMapper(catalogue, name)).identity;
  } finally {
    await catalogue.close();
  }
}

/** Throws `ConfigError` with the known names. */
export async function requireMapper(catalogue: MapperCatalogue, name: string): Promise<CatalogueEntry> {
  const entry = await catalogue.find(name);
  if (entry !== null) return entry;
  const known = (await catalogue.list()).map((one) => one.identity.name);
  throw new ConfigError("HG-MAP-001", {
    operation: "find mapper",
    subject: name,
    message: `there is no mapper ${name}; there are ${known.join(", ")}`,
  });
}

function note(message: string): void {
  process.stderr.write(`${message}\n`);
}

/** Identifier kinds are never mixed in one push, so there may be several bodies; they are printed as one array. */
async function printPayload(bodies: AsyncIterable<Buffer>): Promise<void> {
  if (process.stdout.isTTY) {
    const elements: unknown[] = [];
    for await (const body of bodies) elements.push(...(JSON.parse(body.toString("utf8")) as unknown[]));
    printJson(elements);
    return;
  }
  let before = "[";
  for await (const body of bodies) {
    await written(`${before}${body.toString("utf8", 1, body.length - 1)}`);
    before = ",";
  }
  print(before === "[" ? "[]" : "]");
}

/** The reader of the payload may be slower than this process. */
function written(text: string): Promise<void> {
  return new Promise((done) => process.stdout.write(text, () => done()));
}

/**
 * Refused rows go to standard error, so that the payload stays JSON. In a strict file a single refusal is the error
 * itself.
 */
function noteRefusals({ status, rejected, rejectedCount, rejectedByReason = [] }: MapResult): void {
  if (status === "failed" && rejectedCount < 2) return;
  for (const line of refusalLines(rejected, rejectedCount)) note(line);
  if (rejectedByReason.length < rejectedCount) for (const line of reasonLines(rejectedByReason)) note(line);
}

function findingLines(findings: readonly MappingFinding[]): string[] {
  return byAttention(findings).map(
    (one) => `${styled(one.attention ? "yellow" : "dim", "found")} ${findingWords(one)}`,
  );
}

function refusalLines(rejected: readonly RejectedRow[], count: number): string[] {
  const lines = rejected
    .slice(0, SHOWN)
    .map(
      ({ message, place }) =>
        `${styled("yellow", "refused")} ${placeWords(place)}${message}${foundWords(message, place)}`,
    );
  return count > lines.length ? [...lines, `… and ${count - lines.length} more`] : lines;
}

/** Findings that are in the first lines of a summary. */
const SUPERSEDED_KINDS: readonly string[] = ["repeated", "replaced"];

function printSummary(result: MapResult, json: boolean): void {
  if (json) {
    printJson(result);
    return;
  }
  if (result.status === "mapped") {
    const { points, targets, period, superseded, conflicts, rejectedCount } = result;
    print(
      `${counted(points, "point")} of ${counted(targets.length, "target")}, ` +
        `${counted(superseded, "superseded row")}` +
        `${conflicts === undefined ? "" : ` (${conflicts.count} with another value)`}, ` +
        `${counted(rejectedCount, "refused row")}`,
    );
    if (conflicts !== undefined) {
      print(
        styled("yellow", `${counted(conflicts.count, "row has", "rows have")} another value than the row that counts:`),
      );
      for (const one of conflicts.shown) print(`  ${conflictWords(one)}`);
      if (conflicts.count > conflicts.shown.length) print(`  … and ${conflicts.count - conflicts.shown.length} more`);
    }
    if (result.openLine !== undefined) print(`the last line has no line end: ${JSON.stringify(result.openLine)}`);
    if (period !== null) print(`from ${period.from} to ${period.to}`);
    printTable(
      ["target", "points", "unit"],
      targets.slice(0, SHOWN).map((one) => [one.target, String(one.points), one.unit ?? ""]),
    );
    if (targets.length > SHOWN) print(`… and ${targets.length - SHOWN} more`);
  }
  const untold = result.findings.filter(({ kind }) => !SUPERSEDED_KINDS.includes(kind));
  for (const line of findingLines(untold)) print(line);
  for (const line of refusalLines(result.rejected, result.rejectedCount)) print(line);
  const { rejectedByReason = [] } = result;
  if (rejectedByReason.length < result.rejectedCount) for (const line of reasonLines(rejectedByReason)) print(line);
}

function parseLookup(given: string): LookupFile {
  const [, name, path] = /^([^=]+)=(.+)$/s.exec(given) ?? [];
  if (name !== undefined && path !== undefined) return lookupFile({ name, path: resolve(path) });
  throw invalidOption("--lookup", `${given} is not of the form NAME=PATH`);
}
