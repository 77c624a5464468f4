/** The rule for files that are at a drop at its first contact with a ledger. */
import type { FileEntry } from "../model.ts";
import type { DropOptions } from "./options.ts";

export type InitialRule = DropOptions["initial"];

/**
 * Why the rule leaves out a file of the first contact, or null when it is processed. `modifiedMs`: null when
 * unknown.
 */
export function whySkipped(rule: InitialRule, modifiedMs: number | null): string | null {
  if (rule === "process") return null;
  if (rule === "skip") return "it was there at the first contact, and the drop has `initial: skip`";
  if (modifiedMs === null || modifiedMs >= rule.sinceMs) return null;
  const since = isoWords(rule.sinceMs);
  return (
    `it was there at the first contact and was last changed ${isoWords(modifiedMs)}, ` + `before ${since} (\`initial\`)`
  );
}

/** For `headgate check`: counts the files of a listing that each rule would process. */
export class InitialForecast {
  readonly #rule: InitialRule;
  readonly #modifiedMs: (entry: FileEntry) => number | null;
  #files = 0;
  #taken = 0;
  #undated = 0;

  constructor(rule: InitialRule, drop: { modifiedMs(entry: FileEntry): number | null }) {
    this.#rule = rule;
    this.#modifiedMs = (entry) => drop.modifiedMs(entry);
  }

  add(entry: FileEntry): void {
    const modifiedMs = this.#modifiedMs(entry);
    this.#files += 1;
    if (modifiedMs === null) this.#undated += 1;
    if (whySkipped(this.#rule, modifiedMs) === null) this.#taken += 1;
  }

  /** One sentence for a person. */
  words(): string {
    const own = typeof this.#rule === "string" ? this.#rule : `since ${isoWords(this.#rule.sinceMs)}`;
    const undated = this.#undated > 0 ? `; ${this.#undated} without a full date from the server` : "";
    return (
      `at first contact \`initial: ${own}\` processes ${this.#taken} of ${this.#files} files ` +
      `(process: ${this.#files}, skip: 0${undated})`
    );
  }
}

function isoWords(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toString();
}
