/** `headgate provision`: shows or creates the structure that the targets of held runs need and the account lacks. */

import { wordsOf } from "#core/errors.ts";
import { type GatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
import { assertHeld, type RunProvisioned, RunProvisioner } from "#gateway/console/provision-runs.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { allRuns } from "#gateway/migration/report/delivered.ts";
import type { Run } from "#gateway/model.ts";
import { createdWords, creationWords } from "#gateway/provisioning/provisioner.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { type CommandFrame, configOption } from "./command.ts";
import { authorOf, type CommandOptions, daemonWords, sendCommand } from "./command-client.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { print, printDeclined, printJson, styled } from "./output.ts";
import { isConfirmed } from "./prompt.ts";
import { findRuns } from "./run-names.ts";

interface ProvisionOptions extends CommandOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export function addProvision({ command, stop, action }: CommandFrame): void {
  command("provision", [
    "headgate provision -c gateway.yaml --dry-run",
    "headgate provision 01kag3v0s9c7yq5d2e8fxh4m1n -c gateway.yaml --yes",
  ])
    .addOption(configOption())
    .option("--dry-run", "show what would be created, and create nothing")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((runs: string[], options: ProvisionOptions) => provision(runs, options, stop)));
}

async function provision(asked: readonly string[], options: ProvisionOptions, stop: AbortSignal): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const isDryRun = options.dryRun === true;
  if (!isDryRun && options.yes !== true) {
    const wanted = await provisionAll(asked, options, config, true, stop);
    const isAsked = wanted.some(({ created }) => created.length > 0);
    if (isAsked && options.json !== true) printDone(wanted, true);
    const confirmation = { operation: "provision", subject: asked.join(", ") || "all held runs" };
    if (isAsked && !(await isConfirmed("Create this at the service?", confirmation, stop))) {
      printDeclined("nothing was created", options);
      return 1;
    }
  }
  const done = await provisionAll(asked, options, config, isDryRun, stop);
  if (options.json === true)
    printJson(done.map((one) => ({ ...one, error: one.error === null ? null : wordsOf(one.error) })));
  else printDone(done, isDryRun);
  if (!isDryRun && done.some(({ created }) => created.length > 0)) {
    // All held runs are rechecked: others may wait for the same structure, and some may have been resumed meanwhile.
    const { daemon } = await sendCommand(config, { order: "recheck", ...authorOf(options) });
    if (daemon === null && options.json !== true) print(daemonWords(daemon));
  }
  const error = done.at(-1)?.error ?? null;
  if (error !== null) throw error;
  return done.some(({ impossible }) => impossible.length > 0) ? 1 : 0;
}

/** Provisions up to the first error, which is that of the last result. */
async function provisionAll(
  asked: readonly string[],
  { config: configPath }: ProvisionOptions,
  config: GatewayConfig,
  isDryRun: boolean,
  stop: AbortSignal,
): Promise<readonly RunProvisioned[]> {
  const { ledger } = await openLedgerToRead(configPath);
  const done: RunProvisioned[] = [];
  const provisioner = new RunProvisioner({ config, ledger, spool: await openSpool(config.spool) });
  try {
    for await (const run of heldRuns(asked, configPath, config, ledger)) {
      const one = await provisioner.provision(run, isDryRun, stop);
      done.push(one);
      if (one.error !== null) break;
    }
  } finally {
    await provisioner.close();
    await ledger.close();
  }
  return done;
}

async function* heldRuns(
  asked: readonly string[],
  configPath: string,
  config: GatewayConfig,
  ledger: Ledger,
): AsyncGenerator<Run> {
  if (asked.length === 0) return yield* allRuns(ledger, ["held"]);
  const named = await findRuns(asked, "provision", configPath, config);
  for (const run of named) assertHeld(run);
  yield* named;
}

function printDone(done: readonly RunProvisioned[], dryRun: boolean): void {
  if (done.length === 0) print("no run is held");
  for (const { run, file, created, impossible, error } of done) {
    print(`${styled("bold", file)} (run ${run})`);
    for (const one of created) print(`  ${dryRun ? "would create" : "created"} ${creationWords(one)}`);
    for (const why of impossible) print(`  ${styled("red", "cannot")} ${why}`);
    if (created.length === 0 && impossible.length === 0 && error === null) print("  nothing is missing");
    else if (created.length > 0) print(`  ${dryRun ? "altogether" : "created"}: ${createdWords(created)}`);
  }
}
