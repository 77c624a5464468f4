/**
 * The commands of `headgate`, and their shared behaviour: `--help` with an example, exit 0, 1 or 2, errors in three
 * parts.
 */
import { Command, CommanderError } from "commander";
import { ConfigError } from "#core/errors.ts";
import { packageVersion } from "#core/package/version.ts";
import { keepNewFilesPrivate } from "#core/private-files.ts";
import { type CommandFrame, withExamples } from "./command.ts";
import { COMMANDS } from "./command-list.ts";
import { exitCodeOf, printError, printErrorsAsJson } from "./output.ts";

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
