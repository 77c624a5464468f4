/** `headgate forget`: the ledger forgets a file, so that it is taken again as a new one. */

import { isAbsolute, relative, resolve, sep } from "node:path";
import { RejectedError } from "#core/errors.ts";
import { counted, noun } from "#core/text.ts";
import { type GatewayConfig, isInsideHub } from "#gateway/config.ts";
import type { Forgotten } from "#gateway/ledger/ledger.ts";
import type { CommandFrame } from "./command.ts";
import { authorOf, type CommandOptions, daemonWords, sendCommand } from "./command-client.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { print, printDeclined, printJson } from "./output.ts";
import { isConfirmed } from "./prompt.ts";
import { withLedger } from "./run-names.ts";

interface ForgetOptions extends CommandOptions {
  readonly drop?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export function addForget({ command, stop, action }: CommandFrame): void {
  command("forget", [
    "headgate forget 2026/meters_2026-03.csv -c gateway.yaml --drop field --dry-run",
    "headgate forget 2026/meters_2026-03.csv -c gateway.yaml --drop field --yes",
    "headgate forget 1284 -c hub.yaml                       # by the id of a stored file",
  ])
    .addOption(operatedConfigOption())
    .option("--drop <name>", "its drop, where several have such a path")
    .option("--dry-run", "show what would be forgotten, and forget nothing")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((path: string, options: ForgetOptions) => forget(path, options, stop)));
}

async function forget(path: string, options: ForgetOptions, stop: AbortSignal): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const file = await findFile(path, options, config);
  const isDryRun = options.dryRun === true;
  if (isDryRun || options.yes !== true) {
    const known = await withLedger(options.config, (ledger) => ledger.forgettable(file.drop, file.path));
    if (isDryRun && options.json === true) printJson({ ...file, ...known });
    else if (options.json !== true) printForgotten("would be forgotten", file, known);
    if (isDryRun) return 0;
    const confirmation = { operation: "forget", subject: file.path };
    if (!(await isConfirmed("Forget it?", confirmation, stop))) {
      printDeclined("nothing was forgotten", options);
      return 1;
    }
  }
  const { answer, daemon } = await sendCommand(config, { order: "forget", ...file, ...authorOf(options) });
  if (options.json === true) {
    printJson(answer);
    return 0;
  }
  printForgotten("forgotten", file, answer);
  if (daemon === null) print(daemonWords(daemon));
  return 0;
}

function printForgotten(
  what: string,
  file: { readonly drop: string; readonly path: string },
  { arrivals, runs, acceptedPoints, unanswered }: Forgotten,
): void {
  print(
    `${what}: ${file.path} at ${file.drop}, ${arrivals} ${arrivals === 1 ? "arrival" : "arrivals"}, ` +
      `${runs.length} ${runs.length === 1 ? "run" : "runs"}`,
  );
  for (const run of runs) print(`  run ${run}`);
  if (acceptedPoints > 0)
    print(
      `${counted(acceptedPoints, "point")} of it had been accepted: if the file is still at its drop, ` +
        `${noun(acceptedPoints, "it is", "they are")} sent again`,
    );
  if (unanswered > 0) print(`${unanswered} of its batches were sent and got no response`);
}

/** Finds the file by its path at a drop, or by a path into the folder of a local drop. */
async function findFile(
  path: string,
  options: ForgetOptions,
  config: GatewayConfig,
): Promise<{ readonly drop: string; readonly path: string }> {
  const { ledger } = await openLedgerToRead(options.config);
  try {
    const known = await ledger.arrivalsAt(path, options.drop);
    const drops = [...new Set(known.map(({ drop }) => drop))];
    const [drop] = drops;
    if (drop !== undefined && drops.length === 1) return { drop, path };
    if (drops.length > 1)
      throw new RejectedError("HG-CLI-002", {
        operation: "forget",
        subject: path,
        message: `several drops know a file of this path: ${drops.join(", ")}`,
        hint: "Name one with --drop.",
      });
    // Each file of a hub's storage has a folder of its own there.
    const ofHub = /^\d+$/.test(path) && isInsideHub(config) ? await ledger.trace(`${path}/`) : [];
    const stored = ofHub.find(({ arrival }) => arrival.parentId === null)?.arrival;
    if (stored !== undefined) return { drop: stored.drop, path: stored.path };
    for (const local of config.drops) {
      if (local.kind !== "local" || (options.drop !== undefined && options.drop !== local.name)) continue;
      const inside = relative(local.path, resolve(path));
      if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) continue;
      const there = inside.split(sep).join("/");
      if ((await ledger.arrivalsAt(there, local.name)).length > 0) return { drop: local.name, path: there };
    }
  } finally {
    await ledger.close();
  }
  throw new RejectedError("HG-CLI-002", {
    operation: "forget",
    subject: path,
    message: path.includes("!/")
      ? "an entry is forgotten only with its container"
      : `the ledger knows no file of the path ${path}`,
    hint: "Name the path as `headgate runs` shows it.",
  });
}
