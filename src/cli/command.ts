/** What commands have in common. */
import type { Command } from "commander";

/** What every command is given. It answers the exit code: 0 success, 1 a failure of the work, 2 wrong usage or configuration. */
export interface CommandFrame {
  readonly program: Command;
  /** Aborted by SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  /** Wraps an action so that its answer becomes the exit code and its error is printed. */
  action<Arguments extends unknown[]>(
    work: (...args: Arguments) => Promise<number>,
  ): (...args: Arguments) => Promise<void>;
}

/** A command with its description and an example for `--help`. Subcommands inherit how the program ends. */
export function addCommand(
  parent: Command,
  name: string,
  description: string,
  examples: readonly string[],
): Command {
  return parent
    .command(name)
    .description(description)
    .exitOverride()
    .addHelpText(
      "after",
      `\nExample${examples.length > 1 ? "s" : ""}:\n${examples.map((example) => `  ${example}`).join("\n")}`,
    );
}
