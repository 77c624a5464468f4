/** The lines that a mapper logs about one file: the first of them, shortened, and the number of omitted lines. */
import { formatWithOptions } from "node:util";
import { shorten } from "./rejections.ts";

type Level = "info" | "warn";
export type WriteLine = (level: Level, message: string) => void;

const LINES_MAX = 200;
const CHARACTERS_MAX = 1_000;

export class CappedLog {
  readonly #write: WriteLine;
  #lines = 0;

  constructor(write: WriteLine) {
    this.#write = write;
  }

  add(level: Level, message: string): void {
    this.#lines += 1;
    if (this.#lines <= LINES_MAX) this.#write(level, shorten(message.trimEnd(), CHARACTERS_MAX));
  }

  /** Called after the last line for this file. */
  end(): void {
    const more = this.#lines - LINES_MAX;
    if (more > 0) this.#write("warn", `${more} more lines of this mapper about this file were left out`);
    this.#lines = LINES_MAX;
  }
}

const SHOWN = { depth: 3, breakLength: Number.POSITIVE_INFINITY } as const;

/** The text that the console would print for the values; a value may throw when it is inspected. */
export function logText(values: readonly unknown[]): string {
  try {
    return formatWithOptions(SHOWN, ...values);
  } catch {
    return "a value that cannot be shown";
  }
}
