/**
 * The commands of `headgate`, and their shared behaviour: `--help` with an example, exit 0, 1 or 2, errors in three
 * parts.
 */
import { Command, CommanderError } from "commander";
import { ConfigError } from "#core/errors.ts";
import { packageVersion } from "#core/package/version.ts";
import { keepNewFilesPrivate } from "#core/private-files.ts";
import { type CommandFrame, withExamples } from "./command.ts";
import { exitCodeOf, printError, printErrorsAsJson } from "./output.ts";

/** By name and arguments, in the order of `--help`. */
export const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  demo: {
    description: "Shows the whole chain on this machine: sample drops, gateway, hub, stored points.",
    load: async () => (await import("./demo/demo.ts")).addDemo,
  },
  "init [what]": {
    description:
      "Writes a configuration with comments, of a gateway (the default) or a hub: asks a few questions, or " +
      "takes the values from flags. It is checked before it is written, and no file is overwritten.",
    load: async () => (await import("./init/init.ts")).addInit,
  },
  gateway: {
    description: "The daemon: watches the drops, maps files and pushes their readings.",
    load: async () => (await import("./gateway.ts")).addGateway,
  },
  hub: {
    description: "The measurement data service: token, push, read and management interfaces.",
    load: async () => (await import("./hub.ts")).addHub,
  },
  check: {
    description: "Validates the configuration, then tries every drop, the services and the spool, or what a hub needs.",
    load: async () => (await import("./check.ts")).addCheck,
  },
  "map <file>": {
    description: "Maps one file and prints the push payload. Needs no service.",
    load: async () => (await import("./mapper/map.ts")).addMap,
  },
  mapper: {
    description: "Mappers: the plug-ins that turn files into readings.",
    load: async () => (await import("./mapper/mapper.ts")).addMapper,
  },
  trigger: {
    description: "Triggers: the rules that claim files by their names.",
    load: async () => (await import("./trigger.ts")).addTrigger,
  },
  runs: {
    description: "Lists runs, newest first.",
    load: async () => (await import("./runs.ts")).addRuns,
  },
  "trace [id]": {
    description: "The history of a file, or the row of a stored reading.",
    load: async () => (await import("./trace.ts")).addTrace,
  },
  quarantine: {
    description:
      "Lists files that need attention (quarantined, held, discarded, unconfirmed, claimed by no trigger): file, " +
      "place, reason, and the next steps.",
    load: async () => (await import("./quarantine.ts")).addQuarantine,
  },
  "replay <runs...>": {
    description:
      "Runs files again, from the input that the spool keeps, with the current trigger and mapper. A replay is " +
      "a new run with new operations. Dates that later runs have delivered are left out.",
    load: async () => (await import("./replay.ts")).addReplay,
  },
  "release <run>": {
    description:
      "Pushes a held run as it is, whatever the guard found. Asks for confirmation before pushing readings that " +
      "the service would discard.",
    load: async () => (await import("./release.ts")).addRelease,
  },
  "recheck [runs...]": {
    description:
      "Checks held runs now, and queries the outcome of unconfirmed ones (all of them when none is named), " +
      "without cached structure of the account. The gateway does the same automatically, with growing pauses.",
    load: async () => (await import("./release.ts")).addRecheck,
  },
  "provision [runs...]": {
    description:
      "Creates the sites, sources and variables that held runs need (all held runs when none is named), by the " +
      "`provision` template of their triggers, and has the runs checked again.",
    load: async () => (await import("./provision.ts")).addProvision,
  },
  ledger: {
    description: "The durable record of files, runs and batches.",
    load: async () => (await import("./ledger/ledger.ts")).addLedger,
  },
  "cancel <runs...>": {
    description:
      "Gives up runs that were not delivered, named by their ids or their files. Readings that the service has " +
      "accepted stay; the files stay at their drops.",
    load: async () => (await import("./cancel.ts")).addCancel,
  },
  "pause <name>": {
    description:
      "Pauses a drop, which is then not polled, or a trigger, which then claims nothing, until it is resumed; " +
      "also over a restart. Runs in progress continue.",
    load: async () => (await import("./pause.ts")).addPause,
  },
  "resume <name>": {
    description: "Resumes a paused drop or trigger; files that waited for the trigger are offered to it again.",
    load: async () => (await import("./pause.ts")).addResume,
  },
  "forget <path>": {
    description:
      "The ledger forgets every version of a file, so that the file at its drop is taken as a new one. Refused " +
      "while a run of it is in progress.",
    load: async () => (await import("./forget.ts")).addForget,
  },
  health: {
    description: "Checks that the gateway or the hub responds: exit 0 when it does, else 1.",
    load: async () => (await import("./health.ts")).addHealth,
  },
  console: {
    description: "The gateway's pages for people.",
    load: async () => (await import("./console.ts")).addConsole,
  },
  notify: {
    description: "Notifications about everything that needs attention.",
    load: async () => (await import("./notify.ts")).addNotify,
  },
  "migrate <pattern...>": {
    description:
      "History in one go: every file that the patterns find is mapped and delivered, once. The same command " +
      "resumes it.",
    load: async () => (await import("./migrate/migrate.ts")).addMigrate,
  },
  "completion <shell>": {
    description: "Prints a completion script for bash, zsh, fish.",
    load: async () => (await import("./completion.ts")).addCompletion,
  },
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
    command(name, examples) {
      const listed = program.commands.find((command) => command.name() === name);
      if (listed === undefined) throw new Error(`${name} is not in the list of commands`);
      return withExamples(listed, examples);
    },
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
  for (const [words, { description }] of Object.entries(COMMANDS))
    program.command(words).description(description).exitOverride();
  await loadCommands(argv, frame);
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

/** The options and the work of the named command, also after `help`; of all commands for completion. */
async function loadCommands([, , first = "", second = ""]: readonly string[], frame: CommandFrame): Promise<void> {
  const name = first === "help" ? second : first;
  for (const [words, { load }] of Object.entries(COMMANDS))
    if (name === NEEDS_ALL || name === words.split(" ", 1)[0]) (await load())(frame);
}

// The commands of `headgate`: name and description of each, and where its options and its work are. The modules of a
// command are loaded when it is called, so that `--help` and every command start without those of the others.

interface ListedCommand {
  readonly description: string;
  /** Adds options, examples and action to the command of this name. */
  load(): Promise<(frame: CommandFrame) => void>;
}
