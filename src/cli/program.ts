/**
 * The commands of `headgate`, and their shared behaviour: `--help` with an example, exit 0, 1 or 2, errors in three
 * parts.
 */
import { Command, CommanderError } from "commander";
import { ConfigError } from "../support/errors.ts";
import { keepNewFilesPrivate } from "../support/private-files.ts";
import { packageVersion } from "../support/version.ts";
import type { CommandFrame } from "./command.ts";
import { exitCodeOf, printError, printErrorsAsJson } from "./output.ts";

type AddCommand = (frame: CommandFrame) => void;

/** In the order of `--help`. Each command loads its own modules, so that it starts without those of the others. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import("./demo/demo.ts")).addDemo,
  init: async () => (await import("./init/init.ts")).addInit,
  gateway: async () => (await import("./gateway.ts")).addGateway,
  hub: async () => (await import("./hub.ts")).addHub,
  check: async () => (await import("./check.ts")).addCheck,
  map: async () => (await import("./mapper/map.ts")).addMap,
  mapper: async () => (await import("./mapper/mapper.ts")).addMapper,
  trigger: async () => (await import("./trigger.ts")).addTrigger,
  runs: async () => (await import("./runs.ts")).addRuns,
  trace: async () => (await import("./trace.ts")).addTrace,
  quarantine: async () => (await import("./quarantine.ts")).addQuarantine,
  replay: async () => (await import("./replay.ts")).addReplay,
  release: async () => (await import("./release.ts")).addRelease,
  recheck: async () => (await import("./release.ts")).addRecheck,
  provision: async () => (await import("./provision.ts")).addProvision,
  ledger: async () => (await import("./ledger/ledger.ts")).addLedger,
  cancel: async () => (await import("./cancel.ts")).addCancel,
  pause: async () => (await import("./pause.ts")).addPause,
  resume: async () => (await import("./pause.ts")).addPause,
  forget: async () => (await import("./forget.ts")).addForget,
  health: async () => (await import("./health.ts")).addHealth,
  console: async () => (await import("./console.ts")).addConsole,
  notify: async () => (await import("./notify.ts")).addNotify,
  migrate: async () => (await import("./migrate/migrate.ts")).addMigrate,
  completion: async () => (await import("./completion.ts")).addCompletion,
};

/** Commands whose files are shared with other users; the files of all other commands are private state. */
const FOR_OTHERS = ["mapper", "map"];

/** Completion lists the options of all other commands. */
const NEEDS_ALL = "completion";

export async function runCli(argv: readonly string[], stop: AbortSignal): Promise<number> {
  let exitCode = 0;
  const program = new Command("headgate")
    .description(
      "Ingestion gateway and file mapper for time-series measurement data, with the measurement data service " +
        "beside it.",
    )
    .version(packageVersion())
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(`headgate --help` lists the commands, `headgate COMMAND --help` the options of one)");
  const frame: CommandFrame = {
    program,
    stop,
    action:
      (work) =>
      async (...args) => {
        exitCode = await work(...args);
      },
  };
  const isJsonRequested = wantsJson(argv);
  printErrorsAsJson(isJsonRequested);
  if (isJsonRequested) {
    // Faults of the command line are printed by `printError`.
    program.configureOutput({ outputError: () => undefined, writeErr: () => undefined });
  }
  if (!FOR_OTHERS.includes(argv[2] ?? "")) keepNewFilesPrivate();
  for (const add of await commandsFor(argv[2])) add(frame);
  try {
    await program.parseAsync([...argv]);
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      if (isJsonRequested && thrown.exitCode !== 0) printError(usageError(thrown, argv));
      return thrown.exitCode === 0 ? 0 : 2;
    }
    printError(thrown);
    return exitCodeOf(thrown);
  }
}

/** Read from the arguments alone, since parsing them may be what fails. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end === -1 ? argv : argv.slice(0, end)).includes("--json");
}

function usageError({ message }: CommanderError, argv: readonly string[]): ConfigError {
  return new ConfigError("HG-CLI-001", {
    operation: "read command line",
    subject: argv.slice(2).join(" "),
    message: message.replace(/^error: /, ""),
  });
}

/** Only the named command; all of them for `--help`, and to suggest a name. */
async function commandsFor(name = ""): Promise<Iterable<AddCommand>> {
  const asked = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (asked !== undefined && name !== NEEDS_ALL) return [await asked()];
  // `pause` and `resume` share a module.
  return new Set(await Promise.all(Object.values(COMMANDS).map((load) => load())));
}
