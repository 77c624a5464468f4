/** Asks the person at the terminal. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { ConfigError } from "#core/errors.ts";

export interface Confirmation {
  /** Confirmed by an option; then the person is not asked. */
  readonly yes?: boolean;
  /** The operation of the command, for the error. */
  readonly operation: string;
  readonly subject: string;
}

/** Whether the person at the terminal confirms. Without a terminal, throws a `ConfigError` that names `--yes`. */
export async function isConfirmed(
  question: string,
  { yes = false, operation, subject }: Confirmation,
  signal: AbortSignal,
  terminal: Terminal = TERMINAL,
): Promise<boolean> {
  if (yes) return true;
  if (!canAsk(terminal))
    throw new ConfigError("HG-CLI-001", {
      operation,
      subject,
      message: "nothing was changed: there is no terminal to ask for confirmation",
      hint: "Confirm with --yes; --dry-run, where the command has it, shows the effect.",
    });
  return /^y(es)?$/i.test(await ask(`${question} [y/N] `, signal, terminal));
}

export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Standard error, so that standard output holds only results. */
export const TERMINAL: Terminal = { input: process.stdin, output: process.stderr };

/** Whether a person can answer. */
export function canAsk({ input }: Terminal = TERMINAL): boolean {
  return input.isTTY === true;
}

/** As `ask`, without showing what is typed. */
export async function askHidden(
  question: string,
  signal: AbortSignal,
  { input, output }: Terminal = TERMINAL,
): Promise<string> {
  if (!canAsk({ input, output })) return ask("", signal, { input, output });
  output.write(question);
  // Line editing writes what is typed, to nowhere.
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: hidden, terminal: true });
  const ended = new AbortController();
  lines.once("SIGINT", () => ended.abort());
  lines.once("close", () => ended.abort());
  try {
    return (await lines.question("", { signal: AbortSignal.any([signal, ended.signal]) })).trim();
  } catch (thrown) {
    if (thrown instanceof Error && thrown.name === "AbortError") return "";
    throw thrown;
  } finally {
    lines.close();
    output.write("\n");
  }
}

/** The answer without surrounding spaces; empty when the input ends or `signal` is aborted. */
export async function ask(
  question: string,
  signal: AbortSignal,
  { input, output }: Terminal = TERMINAL,
): Promise<string> {
  // No line editing: Ctrl-C stays a signal to the process.
  const lines = createInterface({ input, output, terminal: false });
  const ended = new AbortController();
  lines.once("close", () => ended.abort());
  try {
    const either = AbortSignal.any([signal, ended.signal]);
    return (await lines.question(question, { signal: either })).trim();
  } catch (thrown) {
    if (thrown instanceof Error && thrown.name === "AbortError") return "";
    throw thrown;
  } finally {
    lines.close();
  }
}
