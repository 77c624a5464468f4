/** Asks the person at the terminal. */
import { createInterface } from "node:readline/promises";

export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Standard error, so that results on standard output stay by themselves. */
export const TERMINAL: Terminal = { input: process.stdin, output: process.stderr };

/** Whether somebody is there. */
export function canAsk({ input }: Terminal = TERMINAL): boolean {
  return input.isTTY === true;
}

/** The answer without the spaces around it; empty when the input ends or `signal` comes instead. */
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
