/** `headgate release` and `headgate recheck`: push a held run as it is, or check it now. */

import { RejectedError, wordsOf } from "#core/errors.ts";
import type { CommandFrame } from "./command.ts";
import { authorOf, type CommandOptions, daemonWords, sendCommand } from "./command-client.ts";
import { loadOperated, loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { print, printDeclined, printJson } from "./output.ts";
import { canAsk, isConfirmed } from "./prompt.ts";
import { findRuns } from "./run-names.ts";

interface ReleaseOptions extends CommandOptions {
  readonly overwrite?: boolean;
  readonly yes?: boolean;
}

/** See the register. */
const WOULD_DISCARD = "HG-GUARD-009";

export function addRelease({ command, stop, action }: CommandFrame): void {
  command("release", ['headgate release 01kag3v0s9c7yq5d2e8fxh4m1n -c gateway.yaml --reason "the unit is right"'])
    .addOption(operatedConfigOption())
    .option("--overwrite", "also dates that later files delivered while it was held")
    .option(
      "-y, --yes",
      "also readings whose targets do not exist, which the service discards; do not ask for confirmation",
    )
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((run: string, options: ReleaseOptions) => release(run, options, stop)));
}

export function addRecheck({ command, action }: CommandFrame): void {
  command("recheck", ["headgate recheck -c gateway.yaml", "headgate recheck meters_2026-03.csv -c gateway.yaml"])
    .addOption(operatedConfigOption())
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((runs: string[], options: CommandOptions) => recheck(runs, options)));
}

async function release(run: string, options: ReleaseOptions, stop: AbortSignal): Promise<number> {
  const { config, hub } = await loadOperated(options.config);
  const overwrite = options.overwrite === true;
  const give = (discard: boolean) =>
    sendCommand(config, { order: "release", run, overwrite, discard, ...authorOf(options) }, hub);
  let given: Awaited<ReturnType<typeof give>>;
  try {
    given = await give(options.yes === true);
  } catch (thrown) {
    if (!(thrown instanceof RejectedError) || thrown.code !== WOULD_DISCARD || !canAsk()) throw thrown;
    const what = `${wordsOf(thrown)}\nPush it anyway?`;
    if (!(await isConfirmed(what, { operation: "release run", subject: run }, stop))) {
      printDeclined("nothing was released", options);
      return 1;
    }
    given = await give(true);
  }
  const { answer, daemon } = given;
  if (options.json === true) printJson(answer);
  else {
    const { discards } = answer;
    const dropped = discards === 0 ? "" : `; the service will discard ${discards} of its readings`;
    print(`released: run ${answer.run} of ${answer.file}, which was held: ${answer.was}${dropped}`);
    if (daemon === null) print(daemonWords(daemon));
  }
  return 0;
}

async function recheck(runs: readonly string[], options: CommandOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const named = await findRuns(runs, "recheck run", options.config, config);
  const asked = runs.length === 0 ? {} : { runs: named.map(({ id }) => id) };
  const { answer, daemon } = await sendCommand(config, { order: "recheck", ...asked, ...authorOf(options) });
  if (options.json === true) printJson(answer);
  else {
    const { length } = answer.runs;
    print(
      length === 0
        ? "no run is held or unconfirmed"
        : `${length} ${length === 1 ? "run is" : "runs are"} checked again`,
    );
    if (daemon === null && length > 0) print(daemonWords(daemon));
  }
  return 0;
}
