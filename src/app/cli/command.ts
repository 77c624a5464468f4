/** Functions shared by all commands. */
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { type Command, Option } from "commander";

/**
 * The context of a command. An action returns the exit code: 0 success, 1 a failure of the work, 2 wrong usage or
 * configuration.
 */
export interface CommandFrame {
  readonly program: Command;
  /** The listed command of this name, with examples for its `--help`. */
  command(name: string, examples: readonly string[]): Command;
  /** Aborted by SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  /** Wraps an action so that its result becomes the exit code and its error is printed. */
  action<Arguments extends unknown[]>(
    work: (...args: Arguments) => Promise<number>,
  ): (...args: Arguments) => Promise<void>;
}

/** Names a configuration where `-c` is not given. */
export const CONFIG_VARIABLE = "HEADGATE_CONFIG";
export const CONFIG_FILES = { gateway: "./gateway.yaml", hub: "./hub.yaml" } as const;

/** `-c`: the given file, else the one that `HEADGATE_CONFIG` names, else the usual file in the current folder. */
export function configOption(of: keyof typeof CONFIG_FILES = "gateway", words = `configuration of the ${of}`): Option {
  return new Option("-c, --config <file>", words).env(CONFIG_VARIABLE).default(CONFIG_FILES[of]);
}

/** `-c` of a command that also works without a configuration: the usual file counts where it exists. */
export function optionalConfigOption(words: string): Option {
  const option = new Option("-c, --config <file>", words).env(CONFIG_VARIABLE);
  return existsSync(CONFIG_FILES.gateway) ? option.default(CONFIG_FILES.gateway) : option;
}

/** Adds a subcommand with its description and examples for `--help`. It inherits the exit handling of the program. */
export function addCommand(parent: Command, name: string, description: string, examples: readonly string[]): Command {
  return withExamples(parent.command(name).description(description).exitOverride(), examples);
}

export function withExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  ${example}`).join("\n");
  return command.addHelpText("after", `\nExample${examples.length > 1 ? "s" : ""}:\n${lines}`);
}

/** The user of the operating system; its number where it has no name, as in many containers. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // The file of users does not have it.
    return `user ${process.getuid?.() ?? ""}`.trim();
  }
}
