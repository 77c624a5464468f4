/** The commands of `headgate`, and what they have in common: `--help` with an example, exit 0, 1 or 2, errors in three parts. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addCancel } from "./cancel.ts";
import { addCheck } from "./check.ts";
import type { CommandFrame } from "./command.ts";
import { addDemo } from "./demo.ts";
import { addForget } from "./forget.ts";
import { addGateway } from "./gateway.ts";
import { addHub } from "./hub.ts";
import { addLedger } from "./ledger.ts";
import { addMap } from "./map.ts";
import { addMapper } from "./mapper.ts";
import { addMigrate } from "./migrate.ts";
import { exitCodeOf, printError } from "./output.ts";
import { addPause } from "./pause.ts";
import { addProvision } from "./provision.ts";
import { addQuarantine } from "./quarantine.ts";
import { addRecheck, addRelease } from "./release.ts";
import { addReplay } from "./replay.ts";
import { addRuns } from "./runs.ts";
import { addTrace } from "./trace.ts";
import { addTrigger } from "./trigger.ts";

export async function runCli(argv: readonly string[], stop: AbortSignal): Promise<number> {
  let exitCode = 0;
  const program = new Command("headgate")
    .description(
      "Ingestion gateway and file mapper for time-series measurement data, with the measurement data service beside it.",
    )
    .version(packageVersion())
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(headgate --help shows the commands; headgate COMMAND --help one of them)");
  const frame: CommandFrame = {
    program,
    stop,
    action:
      (work) =>
      async (...args) => {
        exitCode = await work(...args);
      },
  };
  for (const add of [
    addDemo,
    addGateway,
    addHub,
    addCheck,
    addMap,
    addMapper,
    addTrigger,
    addRuns,
    addTrace,
    addQuarantine,
    addReplay,
    addRelease,
    addRecheck,
    addProvision,
    addLedger,
    addCancel,
    addPause,
    addForget,
    addMigrate,
  ])
    add(frame);
  try {
    await program.parseAsync([...argv]);
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    printError(thrown);
    return exitCodeOf(thrown);
  }
}

function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}
