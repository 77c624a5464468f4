/** `headgate cancel`: gives up runs that were not delivered. */

import type { Run } from "#gateway/model.ts";
import type { CancelledRun } from "#gateway/runs/commands/cancel.ts";
import type { CommandFrame } from "./command.ts";
import { authorOf, type CommandOptions, daemonWords, sendCommand } from "./command-client.ts";
import { loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { print, printDeclined, printJson } from "./output.ts";
import { isConfirmed } from "./prompt.ts";
import { findRuns } from "./run-names.ts";

interface CancelOptions extends CommandOptions {
  readonly yes?: boolean;
}

export function addCancel({ command, stop, action }: CommandFrame): void {
  command("cancel", [
    'headgate cancel 01kag3v0s9c7yq5d2e8fxh4m1n -c gateway.yaml --reason "wrong month"',
    "headgate cancel meters_2026-03.csv -c gateway.yaml --yes",
  ])
    .addOption(operatedConfigOption())
    .option("-y, --yes", "do not ask for confirmation")
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((names: string[], options: CancelOptions) => cancel(names, options, stop)));
}

async function cancel(names: readonly string[], options: CancelOptions, stop: AbortSignal): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const runs = await findRuns(names, "cancel run", options.config, config);
  const isJson = options.json === true;
  if (!isJson && options.yes !== true) for (const run of runs) print(consequenceOf(run));
  const confirmation = { ...options, operation: "cancel run", subject: names.join(", ") };
  if (!(await isConfirmed(`Give ${runs.length === 1 ? "it" : "them"} up?`, confirmation, stop))) {
    printDeclined("nothing was cancelled", options);
    return 1;
  }
  const cancelled: CancelledRun[] = [];
  let isWithoutDaemon = false;
  for (const { id } of runs) {
    const { answer, daemon } = await sendCommand(config, { order: "cancel", run: id, ...authorOf(options) });
    cancelled.push(answer);
    isWithoutDaemon ||= daemon === null;
    if (!isJson) printCancelled(answer);
  }
  // For one named run the output is an object and not a list: existing scripts rely on it.
  if (isJson) printJson(names.length === 1 ? cancelled[0] : cancelled);
  else if (isWithoutDaemon) print(daemonWords(null));
  return 0;
}

function consequenceOf({ id, path, drop, state, points }: Run): string {
  const accepted = points.accepted === 0 ? "" : `; ${points.accepted} of its points were accepted and stay`;
  return `run ${id} of ${path} at ${drop} is ${state}: its readings are not delivered${accepted}`;
}

function printCancelled({ run, file, was, acceptedPoints, unknown }: CancelledRun): void {
  print(`cancelled: run ${run} of ${file}, which was ${was}`);
  if (acceptedPoints > 0) print(`${acceptedPoints} points were accepted before, and stay`);
  for (const operation of unknown) print(`the outcome of ${operation} is unknown: it was sent, and no response came`);
}
