/** `headgate migrate`: delivers history in one go, with the stages of the gateway; the same command resumes it. */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { systemClock } from "#core/clock.ts";
import { writeDurably } from "#core/durable.ts";
import { ConfigError, invalidOption, RejectedError, systemCode, wordsOf } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { counted, grouped } from "#core/text.ts";
import { type GatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isLedgerMissing, isLedgerOwned, openLedger } from "#gateway/ledger/open.ts";
import { clearPause, noteAction, readPause, watchPause } from "#gateway/migration/actions.ts";
import { gatewayOf } from "#gateway/migration/gateway-of.ts";
import { migrationsOf } from "#gateway/migration/overview.ts";
import { type MissingTarget, makePlan, type PlanRequest } from "#gateway/migration/plan/dry-run.ts";
import { listStanding, without } from "#gateway/migration/plan/file-states.ts";
import type { HistoryFile, Standing } from "#gateway/migration/plan/history-files.ts";
import { PlanKeeper } from "#gateway/migration/plan/kept-plan.ts";
import { measuredBefore } from "#gateway/migration/plan/push-rates.ts";
import { assertRequestFits, emptyPatterns } from "#gateway/migration/plan/request-checks.ts";
import { parseSample, SAMPLE_DEFAULT, type SampleLimits } from "#gateway/migration/plan/sample.ts";
import { allRuns } from "#gateway/migration/report/delivered.ts";
import {
  findMigration,
  type KnownMigration,
  knownMigrations,
  type MigrationLimits,
  remakeReport,
} from "#gateway/migration/report/reports.ts";
import { writeReportWorkbook } from "#gateway/migration/report/workbook.ts";
import { absolutePattern, type MigrationRequest, migrationFolder, migrationId } from "#gateway/migration/request.ts";
import { type Ended, runMigration } from "#gateway/migration/run/run.ts";
import { MigrationStructure, type PlannedStructure } from "#gateway/migration/structure/structure.ts";
import { assertNotUndone } from "#gateway/migration/undo/state.ts";
import { executeCommand, type OperatorCommand } from "#gateway/runs/commands.ts";
import { Pauses } from "#gateway/runs/pauses.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { runStatesThat } from "#gateway/states.ts";
import { versionTag } from "#gateway/triggers/options.ts";
import { addCommand, type CommandFrame, configOption } from "../command.ts";
import { authorOf, bindingParts, type CommandOptions } from "../command-client.ts";
import { settingsOption, shareOption } from "../option-values.ts";
import { print, printJson, printTable, sizeWords } from "../output.ts";
import { ask, canAsk, TERMINAL, type Terminal } from "../prompt.ts";
import { limitHeapGrowth } from "../until-idle.ts";
import { conclude, sayOf } from "./conclude.ts";
import { addPauseAndResume } from "./pause.ts";
import { printFindings, printPlan } from "./plan-table.ts";
import { viewFor } from "./progress-bars.ts";
import { printPlannedStructure } from "./structure-table.ts";
import { addThrottleOptions, readThrottle, type ThrottleFlags } from "./throttle-options.ts";
import { type UndoOptions, undoMigration } from "./undo.ts";

interface MigrateOptions extends ThrottleFlags {
  readonly config: string;
  readonly mapper?: string;
  readonly settings: string;
  readonly service?: string;
  readonly lenient?: boolean;
  readonly rejectShare: string;
  readonly versionTag?: string;
  readonly onChange?: string;
  readonly remap?: boolean;
  readonly dryRun?: boolean;
  readonly sample?: string;
  readonly verify?: boolean;
  readonly provision?: string;
  readonly keep?: boolean;
  readonly by?: string;
  readonly reason?: string;
  readonly json?: boolean;
}

const REPORT_EVERY_FILES = 100;
const LIMITS = ["between", "rate", "concurrency", "pauseOnErrors", "verify", "provision"] as const;

/** Not delivered, until a person changes something: held, and refused. */
const REMAPPED = runStatesThat(({ needsAttention, next }) => needsAttention && next.includes("cancelled"));

const CHOICES = ["again", "skip", "stop"] as const;
const NAMED = 5;

export function addMigrate({ command: listed, stop, action }: CommandFrame): void {
  const command = listed("migrate", [
    `headgate migrate '/mnt/archive/**/*.csv' -c gateway.yaml --mapper standard --verify`,
    `headgate migrate 'sftp://meters.example.com/history/*.csv' -c gateway.yaml --mapper standard`,
  ])
    .addOption(configOption("gateway", "configuration of the gateway: services, lookups, push"))
    .option("-m, --mapper <name>", "mapper of all files; without it the triggers of the configuration choose")
    .option("-s, --settings <json>", "settings of the mapper, as a trigger's metadata would give them", "{}")
    .option("--service <name>", "service that the readings go to, where there are several")
    .option("--lenient", "deliver the good rows and report the others")
    .option(
      "--reject-share <share>",
      "with --lenient: share of refused rows above which nothing of a file is delivered",
      "0.1",
    )
    .option(
      "--version-tag <tag>",
      "VersionTag of readings that the file gives none; delivered again with the same tag they replace each other",
    )
    .option(
      "--on-change <what>",
      "files that changed since they were delivered: `again` delivers them once more, `skip` leaves them, " +
        "`stop` does nothing at all; when absent, the command asks on a terminal, and stops elsewhere",
    )
    .option(
      "--remap",
      "take files that are held or refused again, with the triggers, mappers and tables as they are now: after a " +
        "wrong setting was corrected",
    )
    .option(
      "--dry-run",
      "map the files, or a sample of many, ask the service about the targets, report the effort, and send nothing",
    )
    .option(
      "--sample <what>",
      "with --dry-run: how many files are read, `all`, a number of files or a size such as 1GB; when absent, " +
        "300 files and 200MB, spread over names and sizes, or all of a history that is up to half as large again",
    )
    .option(
      "--provision <file>",
      "sites, sources and variables that are missing are created first: by a template (.yaml) as a trigger " +
        "has it, or from a table (.csv, .xlsx); --dry-run shows which",
    )
    .option("--keep", "with --dry-run: keep the plan, so that the console shows it and can start the migration")
    .option("--by <name>", "user in the history of the migration (default: the one who runs the command)")
    .option("--reason <text>", "the reason, for the history of the migration")
    .option("--verify", "at the end, compare what the service stores with what was delivered")
    .option("--no-verify", "do not, where a migration that resumes did")
    .option("--json", "print the result as one JSON object")
    .action(action((patterns: readonly string[], options: MigrateOptions) => migrate(patterns, options, stop)));
  addThrottleOptions(command);
  addPauseAndResume<MigrateOptions>(command, { stop, action }, (id, given) => resumeMigration(id, given, stop));
  // The options of `migrate` itself are accepted here as well.
  addCommand(command, "report <id>", "Writes the report of a migration again, and prints its path.", [
    "headgate migrate report 3f2a -c gateway.yaml",
    "headgate migrate report 3f2a -c gateway.yaml --xlsx report.xlsx",
  ])
    .option("--xlsx <file>", "also as a workbook, with all files and all differences")
    .action(
      action((id: string, _none: unknown, own: Command) => {
        const options = own.optsWithGlobals<MigrateOptions & ReportOptions>();
        return showReport(configOf(options).spool.path, id, options);
      }),
    );
  addCommand(
    command,
    "undo <id>",
    "Removes the readings that only a migration delivered, after it listed them and asked for confirmation. " +
      "The same `migrate` command then delivers it again.",
    ["headgate migrate undo 3f2a -c gateway.yaml --dry-run", "headgate migrate undo 3f2a -c gateway.yaml --yes"],
  )
    .option("--structure", "also the unused sites, sources and variables that it created")
    .option("--yes", "do not ask for confirmation")
    .option("--with-others", "also dates that other runs delivered too, or at which another value is stored now")
    .action(
      action((id: string, _none: unknown, own: Command) => {
        const options = own.optsWithGlobals<MigrateOptions & UndoOptions & CommandOptions>();
        return undoMigration(configOf(options), id, { ...options, ...authorOf(options) }, stop);
      }),
    );
  addCommand(command, "list", "The migrations of this configuration.", [
    "headgate migrate list -c gateway.yaml",
  ]).action(action((_none: unknown, own: Command) => listMigrations(own.optsWithGlobals<MigrateOptions>())));
}

/** The parser does not require the option, since the subcommands share it. */
function configOf({ config }: Pick<MigrateOptions, "config">): GatewayConfig {
  return loadGatewayConfig(config);
}

async function listMigrations(options: MigrateOptions): Promise<number> {
  const known = await migrationsOf(configOf(options).spool.path);
  if (options.json === true) printJson(known);
  else if (known.length === 0) print("no migration was made with this configuration");
  else
    printTable(
      ["id", "state", "started", "ended", "files", "points accepted", "mapper", "patterns"],
      known.map((one) => [
        ...[one.id, one.fault === null ? one.state : `${one.state} (${one.fault})`],
        ...[timeOf(one.actions, "started"), one.state === "running" ? "" : timeOf(one.actions, "ended")],
        ...[filesWords(one.files), grouped(one.points.accepted)],
        ...[one.mapper ?? "by trigger", one.patterns.join(" ")],
      ]),
    );
  if (options.json !== true && known.length > 1) print(`${known.length} migrations`);
  return 0;
}

type Listed = Awaited<ReturnType<typeof migrationsOf>>[number];

/** `2026-03-01 08:00`; empty when it did not happen. The newest action comes first. */
function timeOf(actions: Listed["actions"], what: "started" | "ended"): string {
  const found = actions.find((one) => one.what === what || (what === "ended" && one.what === "paused"));
  return found === undefined ? "" : found.at.slice(0, 16).replace("T", " ");
}

function filesWords(files: Listed["files"]): string {
  const counts = Object.entries(files).filter(([, count]) => count > 0);
  return counts.map(([standing, count]) => `${count} ${standing}`).join(", ");
}

function migrate(patterns: readonly string[], options: MigrateOptions, stop: AbortSignal): Promise<number> {
  return carryOut(orderOf(patterns, options), options, stop);
}

/** With the limits that it had before, as far as no others are given. */
async function resumeMigration(id: string, options: MigrateOptions, stop: AbortSignal): Promise<number> {
  const { order, limits = {} } = await findMigration(configOf(options).spool.path, id);
  return await carryOut(order, { ...limits, ...options }, stop);
}

async function carryOut(order: MigrationRequest, options: MigrateOptions, stop: AbortSignal): Promise<number> {
  const config = configOf(options);
  const { by } = authorOf(options);
  const id = migrationId(order);
  const folder = migrationFolder(config.spool.path, id);
  const throttle = readThrottle(options);
  const known = { id, order, folder };
  const limits = sampleOf(options);
  await assertRequestFits(order, config);
  const own = gatewayOf(config, order, folder, throttle);
  await assertNotUndone(id, folder);
  if (options.dryRun !== true) assertNotRunning(id, own.ledger);
  const standing = await listStanding(own, stop);
  if (standing.files.length === 0)
    throw new ConfigError("HG-CLI-001", {
      operation: "migrate",
      subject: order.patterns.join(" "),
      message: "no file fits the patterns",
      hint: "Put patterns into quotes, so that the shell does not expand them; `**` matches folders at any depth.",
    });
  const empty = emptyPatterns(order, config, standing.files);
  if (options.dryRun === true) {
    const measured = await measuredFor(known, config);
    const sending = { rate: throttle.rate, drainRate: own.push.drainRate ?? null, measured };
    const structure = await MigrationStructure.open(config, order, options.provision, null, stop);
    const request = { files: standing.files, limits, sending, empty };
    if (options.keep !== true) return await showPlan(own, request, structure, options, stop);
    const keeper = await keepPlan(known, options, by);
    sayOf(options)(`plan ${id}: ${standing.files.length} files`);
    return await noted(folder, by, () => showPlan(own, request, structure, { ...options, keeper }, stop));
  }
  const skipped = await leftAlone(standing, options.onChange, stop);
  await mkdir(folder, { recursive: true });
  await noteStart({ ...known, limits: limitsOf(options) }, options, by);
  const say = sayOf(options);
  const retaken = await retake(own, standing, { remap: options.remap === true, by });
  const watching = process.stdout.isTTY === true && options.json !== true ? null : say;
  say(greeting(id, standing, retaken));
  const structure = await MigrationStructure.open(config, order, options.provision, folder, stop);
  const pause = watchPause(folder);
  return noted(folder, by, async () => {
    await structure.prepare(own, folder, say, stop);
    const migration = {
      ...{ config: structure.apply(without(own, skipped)), beside: config.ledger, files: standing.files },
      ...{
        folder,
        throttle,
        stop: AbortSignal.any([stop, pause.signal]),
        viewOf: viewFor(watching),
        note: say,
        provisioning: structure.provisioning,
      },
    };
    limitHeapGrowth();
    const ended = await runMigration(migration);
    const ledger = await openLedger(own.ledger, { clock: systemClock, readOnly: true });
    try {
      const facts = { ...ended, empty, ledger, structure: structure.result(id) };
      return await conclude(known, own, options, facts, stop);
    } finally {
      await ledger.close();
      await noteEnd(folder, ended, by);
    }
  }).finally(() => {
    pause.close();
    return structure.close();
  });
}

/** Before anything is written: the record of the other process stays as it is. */
function assertNotRunning(id: string, ledger: GatewayConfig["ledger"]): void {
  if (!isLedgerOwned(ledger)) return;
  throw new RejectedError("HG-MIGR-002", {
    operation: "migrate",
    subject: id,
    message: "another process carries out this migration",
  });
}

/** In earlier migrations to the same service, also this one's. */
async function measuredFor(known: KnownMigration, config: GatewayConfig) {
  const others = (await knownMigrations(config.spool.path)).filter(
    ({ id, order }) => id !== known.id && order.service === known.order.service,
  );
  return await measuredBefore([known, ...others]);
}

function greeting(id: string, { files, done, changed }: Standing, retaken: number): string {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const before = done === 0 ? "" : `; ${done} were delivered before`;
  const others = changed.length === 0 ? "" : `; ${changed.length} changed since they were delivered`;
  const again = retaken === 0 ? "" : `; ${retaken} that were held or refused are taken again`;
  return `migration ${id}: ${files.length} files, ${sizeWords(bytes)}${before}${others}${again}`;
}

function orderOf(patterns: readonly string[], options: MigrateOptions): MigrationRequest {
  return {
    patterns: patterns.map((pattern) => absolutePattern(pattern, process.cwd())),
    mapper: options.mapper ?? null,
    settings: settingsOption(options.settings),
    rows: options.lenient === true ? "lenient" : "strict",
    rejectShare: shareOption(options.rejectShare),
    service: options.service ?? null,
    versionTag: options.versionTag === undefined ? null : tagOf(options.versionTag),
  };
}

function tagOf(text: string): string {
  const { data, error } = versionTag.safeParse(text);
  if (data === undefined) throw invalidOption("--version-tag", `${text}: ${error.issues[0]?.message}`);
  return data;
}

// `headgate migrate report`: writes the report again, and says where it is.

interface ReportOptions {
  /** Also as a workbook; the file is replaced. */
  readonly xlsx?: string;
  readonly json?: boolean;
}

async function showReport(spool: string, id: string, options: ReportOptions): Promise<number> {
  const { report, page } = await remakeReport(spool, id);
  const workbook = options.xlsx === undefined ? null : resolve(options.xlsx);
  if (workbook !== null) await writeReportWorkbook(report, workbook).catch(cannotWrite(workbook));
  if (options.json === true) {
    printJson(report);
    return 0;
  }
  for (const { by, begunAt, endedAt, points } of report.undone)
    print(
      endedAt === null
        ? `being undone since ${begunAt} by ${by}: ${counted(points, "point")} removed`
        : `undone at ${endedAt} by ${by}: ${counted(points, "point")} removed`,
    );
  printFindings(report.findings);
  print(`report: ${page}`);
  if (workbook !== null) print(`workbook: ${workbook}`);
  return 0;
}

function cannotWrite(path: string) {
  return (cause: unknown): never => {
    if (systemCode(cause) === undefined) throw cause;
    throw new ConfigError("HG-MIGR-005", { operation: "write workbook", subject: path, cause });
  };
}

// Decides about files that changed since they were delivered: by the option, or by the answer of the person at the
// terminal.

type Choice = (typeof CHOICES)[number];

/**
 * Files that are skipped. Throws `ConfigError` to stop, also when there is no decision. `what` undefined: the option
 * is absent.
 */
export async function leftAlone(
  { changed }: Pick<Standing, "changed">,
  what: string | undefined,
  signal: AbortSignal,
  terminal: Terminal = TERMINAL,
): Promise<readonly HistoryFile[]> {
  const ordered = CHOICES.find((choice) => choice === what);
  if (what !== undefined && ordered === undefined)
    throw invalidOption("--on-change", `${what} is not one of ${CHOICES.join(", ")}`);
  if (changed.length === 0) return [];
  const choice = ordered ?? (canAsk(terminal) ? await askFor(changed, signal, terminal) : "stop");
  if (choice === "again") return [];
  if (choice === "skip") return changed;
  throw new ConfigError("HG-MIGR-004", {
    operation: "migrate",
    subject: namesOf(changed),
    message: `${countOf(changed)} changed since ${changed.length === 1 ? "it was" : "they were"} delivered`,
  });
}

async function askFor(changed: readonly HistoryFile[], signal: AbortSignal, terminal: Terminal): Promise<Choice> {
  const question = `${countOf(changed)} changed since the delivery: ${namesOf(changed)}.
Deliver again what is there now, skip, or stop? [again/skip/STOP] `;
  const answer = (await ask(question, signal, terminal)).toLowerCase();
  return CHOICES.find((choice) => answer !== "" && choice !== "stop" && choice.startsWith(answer)) ?? "stop";
}

function countOf({ length }: readonly HistoryFile[]): string {
  return `${length} ${length === 1 ? "file" : "files"}`;
}

function namesOf(files: readonly HistoryFile[]): string {
  const shown = files.slice(0, NAMED).map(({ path }) => path);
  return `${shown.join(", ")}${files.length > NAMED ? ` and ${files.length - NAMED} more` : ""}`;
}

// Before a migration takes files: what is recorded of files that were only touched, and files that a wrong setting held
// or refused are taken again with the current settings.

/** Returns how many files are taken again. `remap`: all that are held or refused, not only those that were touched. */
async function retake(
  own: GatewayConfig,
  { touched, replaced, files }: Standing,
  { remap, by }: { readonly remap: boolean; readonly by: string },
): Promise<number> {
  if (isLedgerMissing(own.ledger) || (touched.length + replaced.length === 0 && !remap)) return 0;
  const ledger = await openLedger(own.ledger, { clock: systemClock });
  try {
    for (const { arrivalId, mtime } of touched) await ledger.recordTouched(arrivalId, mtime);
    const spool = await openSpool(own.spool);
    const binding = await bindingParts(own, spool.root, ledger);
    const pauses = await Pauses.read(ledger);
    const parts = { ledger, spool, binding, pauses, log: silentLog, isRemoved: async () => false };
    const perform = (asked: OperatorCommand) => executeCommand(asked, parts);
    // The file of another time is listed as another arrival, which its held version would be a duplicate of.
    for (const run of replaced) await perform({ order: "cancel", run, by, why: "its file was replaced or touched" });
    const runs = remap ? await remappable(ledger, files) : [];
    const again = { order: "replay", rejectedOnly: false, overwrite: false, by, why: "migrate --remap" } as const;
    for (const run of runs) await perform({ ...again, run });
    return replaced.length + runs.length;
  } finally {
    await ledger.close();
  }
}

/** The latest runs of files that are still as they were; one that changed is taken again anyway. */
async function remappable(ledger: Ledger, files: Standing["files"]): Promise<readonly string[]> {
  const listed = new Map(files.map(({ drop, path, size, mtime }) => [`${drop}\n${path}`, `${size} ${mtime}`]));
  const found: string[] = [];
  for await (const { id, arrivalId, drop, path, size, mtime } of allRuns(ledger, REMAPPED)) {
    const latest = await ledger.runOf(arrivalId);
    const there = listed.get(`${drop}\n${path.split("!/")[0] ?? path}`);
    const isEntry = path.includes("!/");
    if (latest?.id === id && there !== undefined && (isEntry || there === `${size} ${mtime}`)) found.push(id);
  }
  return found;
}

// Records in the folder of a migration: its request with its limits, its plan, and how it ended.

/** Without those that are not limited. */
function limitsOf(options: MigrationLimits): MigrationLimits {
  const given = LIMITS.map((name) => [name, options[name]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== "none" && value !== false));
}

/** `between 22:00-05:00 Europe/Paris, rate 5000/s: the reason`; empty without any. */
function startWords(options: MigrationLimits & { readonly reason?: string }): string {
  const { between, rate, concurrency, pauseOnErrors } = limitsOf(options);
  const limits = Object.entries({ between, rate, concurrency, "pause on errors": pauseOnErrors })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]))
    .join(", ");
  return [limits, options.reason ?? ""].filter((words) => words !== "").join(": ");
}

/** A fault of the work is part of the history. */
async function noted<Result>(folder: string, by: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    await noteAction(folder, { by, what: "failed", words: wordsOf(thrown) });
    throw thrown;
  }
}

/** Called before anything is taken: a former pause no longer counts. */
async function noteStart(
  known: KnownMigration,
  options: MigrationLimits & { readonly config: string; readonly reason?: string },
  by: string,
): Promise<void> {
  await clearPause(known.folder);
  await writeFacts(known, options);
  await noteAction(known.folder, { by, what: "started", words: startWords(options) });
}

function writeFacts({ id, order, folder, limits }: KnownMigration, options: { readonly config: string }) {
  return writeDurably(join(folder, "migration.json"), JSON.stringify({ id, order, config: options.config, limits }));
}

/** The migration is known from then on, and nothing of it was taken. */
async function keepPlan(
  known: KnownMigration,
  options: MigrationLimits & { readonly config: string },
  by: string,
): Promise<PlanKeeper> {
  await mkdir(known.folder, { recursive: true });
  await writeFacts({ ...known, limits: limitsOf(options) }, options);
  await noteAction(known.folder, { by, what: "planned", words: "" });
  const keeper = new PlanKeeper(known.folder, by);
  await keeper.begin();
  return keeper;
}

/** In the name of the person who paused it, where one did. */
async function noteEnd(folder: string, { how, pausedBecause }: Ended, by: string): Promise<void> {
  const pause = how === "stopped" ? await readPause(folder) : null;
  const what = how === "done" ? "ended" : "paused";
  await noteAction(folder, { by: pause?.by ?? by, what, words: pause?.why ?? pausedBecause ?? "" });
}

// `migrate --dry-run`: prints the plan and the structure that would be created, as a table or as JSON.

interface PlanFlags {
  readonly sample?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly versionTag?: string;
  /** Keeps the plan where that is wanted. */
  readonly keeper?: PlanKeeper | null;
}

/** Returns the exit code. */
async function showPlan(
  own: GatewayConfig,
  order: Omit<PlanRequest, "tick" | "onMissing">,
  structure: MigrationStructure,
  { json, versionTag, keeper = null }: PlanFlags,
  stop: AbortSignal,
): Promise<number> {
  const tick = (done: number, of: number) => {
    keeper?.tick(done, of);
    if (done % REPORT_EVERY_FILES === 0) process.stderr.write(`${done} of ${of} files mapped\n`);
  };
  const structures: (PlannedStructure | null)[] = [];
  const planStructure = async (missing: readonly MissingTarget[]) => {
    const found = await structure.plan(own, missing, stop);
    structures.push(found);
    return found?.covered ?? new Set<string>();
  };
  const plan = await makePlan(own, { ...order, tick, onMissing: planStructure }, stop);
  // The service was not asked, so that nothing is known to be missing.
  if (structures.length === 0) await planStructure([]);
  const planned = structures[0] ?? null;
  await keeper?.end(plan);
  if (json === true)
    printJson({
      ...plan,
      versionTag: versionTag ?? null,
      ...(planned === null ? {} : { structure: { ...planned, covered: undefined } }),
    });
  else {
    printPlan(plan);
    if (planned !== null) printPlannedStructure(planned);
  }
  if (json !== true && versionTag !== undefined) print(`  ${tagWords(versionTag)}`);
  const isPossible = planned === null || (planned.impossible.length === 0 && planned.unaskedBecause === null);
  const isSound = plan.findings.every(({ isInformation }) => isInformation) && plan.unfit !== null;
  return isSound && isPossible && !stop.aborted ? 0 : 1;
}

function sampleOf({ sample, dryRun }: PlanFlags): SampleLimits {
  if (sample === undefined) return SAMPLE_DEFAULT;
  if (dryRun !== true) throw invalidOption("--sample", "it limits what a plan reads: use it with --dry-run");
  const limits = parseSample(sample);
  if (limits === undefined)
    throw invalidOption("--sample", `${sample} is neither all nor a number of files nor a size such as 1GB`);
  return limits;
}

function tagWords(tag: string): string {
  return (
    `readings without a version of their own carry the tag ${tag}; readings stored with this tag at their dates ` +
    "are replaced"
  );
}
