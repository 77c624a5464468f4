/** `headgate replay`: runs a file again from the kept input, and shows the differences before anything is sent. */
import { Option } from "commander";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Difference, ReplayPlan, ReplayWish } from "#gateway/console/replay-comparison.ts";
import { ReplayPlanner } from "#gateway/console/replay-plan.ts";
import type { Run } from "#gateway/model.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { byAttention, findingWords } from "#mapping/contract.ts";
import type { CommandFrame } from "./command.ts";
import { authorOf, bindingParts, type CommandOptions, daemonWords, sendCommand } from "./command-client.ts";
import { loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { settingsOption } from "./option-values.ts";
import { print, printJson, styled } from "./output.ts";
import { findRuns, withLedger } from "./run-names.ts";

interface ReplayOptions extends CommandOptions {
  readonly trigger?: string;
  readonly mapper?: string;
  readonly settings?: string;
  readonly rows?: "strict" | "lenient";
  readonly rejected?: boolean;
  readonly overwrite?: boolean;
  readonly dryRun?: boolean;
  readonly diff: boolean;
}

const SHOWN = 20;
const DATES_SHOWN = 10;

export function addReplay({ command, stop, action }: CommandFrame): void {
  command("replay", [
    "headgate replay 01kag3v0s9c7yq5d2e8fxh4m1n -c gateway.yaml --dry-run",
    "headgate replay meters_2026-03.csv -c gateway.yaml --rejected",
  ])
    .addOption(operatedConfigOption())
    .option("--dry-run", "show the differences from what was sent before, and send nothing")
    .option("--rejected", "only readings that the service has not accepted of an earlier run of the file")
    .option("--overwrite", "send also the dates that later runs have delivered")
    .option("--trigger <name>", "use another trigger")
    .option("--mapper <name>", "use another mapper")
    .option("--settings <json>", "use other settings of the mapper than the trigger's")
    .addOption(
      new Option("--rows <rule>", "another rule for refused rows than the trigger's").choices(["strict", "lenient"]),
    )
    .option("--no-diff", "do not map the file first to show the differences")
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((names: string[], options: ReplayOptions) => replayAll(names, options, stop)));
}

async function replayAll(names: readonly string[], options: ReplayOptions, stop: AbortSignal): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const wish = wishOf(options);
  const runs = await findRuns(names, "replay", options.config, config);
  const results: unknown[] = [];
  let left: string | null = "";
  for (const run of runs) {
    const plan = options.diff ? await planOf(run, wish, config, options, stop) : null;
    if (plan !== null && options.json !== true) printPlan(plan);
    if (options.dryRun === true) {
      results.push(plan);
      continue;
    }
    const { rejectedOnly, overwrite, trigger, mapper, settings, rows } = wish;
    const { answer, daemon } = await sendCommand(config, {
      order: "replay",
      run: run.id,
      rejectedOnly,
      overwrite,
      trigger,
      mapper,
      settings,
      rows,
      ...authorOf(options),
    });
    results.push({ ...answer, plan });
    left = daemon;
    if (options.json !== true)
      print(
        `${styled("green", "replay")}  run ${answer.run} takes ${answer.file} at ${answer.drop} again ` +
          `(headgate trace ${answer.run} -c ${options.config})`,
      );
  }
  if (options.json === true) printJson(results);
  else if (options.dryRun === true) print("nothing was sent (--dry-run)");
  else if (left === null) print(daemonWords(left));
  return 0;
}

/** The ledger is closed before the command, which may have to own it. */
function planOf(
  run: Run,
  wish: ReplayWish,
  config: GatewayConfig,
  options: ReplayOptions,
  stop: AbortSignal,
): Promise<ReplayPlan> {
  return withLedger(options.config, async (ledger) => {
    const spool = await openSpool(config.spool);
    const { triggerLists } = ledger;
    const binding = (folder: string) => bindingParts(config, folder, { triggerLists, shared: null });
    const planner = await ReplayPlanner.open({ config, ledger, spool, binding, unplanned: UNPLANNED });
    try {
      return await planner.plan(run, wish, stop);
    } finally {
      await planner.close();
    }
  });
}

const UNPLANNED = "`--no-diff` replays it all the same";

function wishOf(options: ReplayOptions): ReplayWish {
  return {
    rejectedOnly: options.rejected === true,
    overwrite: options.overwrite === true,
    trigger: options.trigger,
    mapper: options.mapper,
    rows: options.rows,
    settings: options.settings === undefined ? undefined : settingsOption(options.settings),
  };
}

function printPlan(plan: ReplayPlan): void {
  const { readings, later, differences, mapper } = plan;
  print(
    `${styled("bold", plan.file)} at ${plan.drop}, run ${plan.run}, by trigger ${plan.trigger} and mapper ` +
      `${mapper.name} ${mapper.version} (${mapper.digest.slice(0, 12)})`,
  );
  const left = later.reduce((sum, one) => sum + one.readings, 0);
  print(
    `  ${readings.mapped} readings mapped, ${plan.refusedRows} rows refused; ${readings.sent} to send: ` +
      `${readings.added} new, ${readings.changed} with another value, ${readings.unchanged} as before`,
  );
  for (const one of byAttention(plan.findings)) print(`  found ${findingWords(one)}`);
  if (readings.acceptedBefore > 0) print(`  ${readings.acceptedBefore} left out, since they were accepted before`);
  if (readings.dropped > 0)
    print(`  ${readings.dropped} that were accepted before are not in the new payload; they stay at the service`);
  const fate = plan.overwrites
    ? "overwrite what later runs have delivered"
    : "left out, since later runs have delivered their dates (--overwrite sends them)";
  if (left > 0) print(styled("yellow", `  ${left} ${fate}:`));
  for (const one of later) {
    const more = one.dates.length > DATES_SHOWN ? ", …" : "";
    print(`    run ${one.run} of ${one.file}: ${one.dates.slice(0, DATES_SHOWN).join(", ")}${more}`);
    if (more !== "") print(`      ${one.readings} readings from ${one.from} to ${one.to}`);
  }
  for (const run of plan.notKept)
    print(styled("yellow", `  the batches of run ${run} are no longer kept, and are missing here`));
  for (const difference of differences.slice(0, SHOWN)) print(`  ${differenceLine(difference)}`);
  if (differences.length > SHOWN) print("  … (--json shows more)");
}

function differenceLine({ target, date, version, before, after }: Difference): string {
  const where = `${target} ${date}${version === null ? "" : ` (${version})`}`;
  if (before === null) return styled("green", `+ ${where}: ${after}`);
  if (after === null) return styled("red", `- ${where}: ${before}`);
  return styled("yellow", `~ ${where}: ${before} → ${after}`);
}
