/** `headgate migrate`: delivers history in one go, with the stages of the gateway; the same command resumes it. */
import { mkdir } from "node:fs/promises";
import type { Command } from "commander";
import { systemClock } from "#core/clock.ts";
import { ConfigError, RejectedError } from "#core/errors.ts";
import { grouped } from "#core/grouped-number.ts";
import { invalidOption } from "#core/invalid-option.ts";
import { type GatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
import { isLedgerOwned, openLedger } from "#gateway/ledger/open.ts";
import { watchPause } from "#gateway/migration/actions.ts";
import { gatewayOf } from "#gateway/migration/gateway-of.ts";
import { migrationsOf } from "#gateway/migration/overview.ts";
import { listStanding, without } from "#gateway/migration/plan/file-states.ts";
import type { Standing } from "#gateway/migration/plan/history-files.ts";
import { measuredBefore } from "#gateway/migration/plan/push-rates.ts";
import { assertRequestFits, emptyPatterns } from "#gateway/migration/plan/request-checks.ts";
import { findMigration, type KnownMigration, knownMigrations } from "#gateway/migration/report/reports.ts";
import { absolutePattern, type MigrationRequest, migrationFolder, migrationId } from "#gateway/migration/request.ts";
import { runMigration } from "#gateway/migration/run/run.ts";
import { MigrationStructure } from "#gateway/migration/structure/structure.ts";
import { assertNotUndone } from "#gateway/migration/undo/state.ts";
import { versionTag } from "#gateway/triggers/options.ts";
import { addCommand, type CommandFrame, configOption } from "../command.ts";
import { authorOf, type CommandOptions } from "../command-client.ts";
import { limitHeapGrowth } from "../heap-growth.ts";
import { settingsOption, shareOption } from "../option-values.ts";
import { print, printJson, printTable, sizeWords } from "../output.ts";
import { conclude, sayOf } from "./conclude.ts";
import { leftAlone } from "./on-change.ts";
import { addPauseAndResume } from "./pause.ts";
import { viewFor } from "./progress-bars.ts";
import { keepPlan, limitsOf, noted, noteEnd, noteStart } from "./record.ts";
import { retake } from "./retake.ts";
import { sampleOf, showPlan } from "./show-plan.ts";
import { type ReportOptions, showReport } from "./show-report.ts";
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
