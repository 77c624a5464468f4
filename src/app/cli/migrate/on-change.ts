/**
 * Decides about files that changed since they were delivered: by the option, or by the answer of the person at the
 * terminal.
 */

import { ConfigError } from "#core/errors.ts";
import { invalidOption } from "#core/invalid-option.ts";
import type { HistoryFile, Standing } from "#gateway/migration/plan/history-files.ts";
import { ask, canAsk, TERMINAL, type Terminal } from "../prompt.ts";

const CHOICES = ["again", "skip", "stop"] as const;
type Choice = (typeof CHOICES)[number];
const NAMED = 5;

/**
 * Files that are skipped. Throws `ConfigError` to stop, also when there is no decision. `what` undefined: the option
 * is absent.
 */
export async function leftAlone(
  { changed }: Pick<Standing, "changed">,
  what: string | undefined,
  signal: AbortSignal,
  terminal: Terminal = TERMINAL,
): Promise<readonly HistoryFile[]> {
  const ordered = CHOICES.find((choice) => choice === what);
  if (what !== undefined && ordered === undefined)
    throw invalidOption("--on-change", `${what} is not one of ${CHOICES.join(", ")}`);
  if (changed.length === 0) return [];
  const choice = ordered ?? (canAsk(terminal) ? await askFor(changed, signal, terminal) : "stop");
  if (choice === "again") return [];
  if (choice === "skip") return changed;
  throw new ConfigError("HG-MIGR-004", {
    operation: "migrate",
    subject: namesOf(changed),
    message: `${countOf(changed)} changed since ${changed.length === 1 ? "it was" : "they were"} delivered`,
  });
}

async function askFor(changed: readonly HistoryFile[], signal: AbortSignal, terminal: Terminal): Promise<Choice> {
  const question = `${countOf(changed)} changed since the delivery: ${namesOf(changed)}.
Deliver again what is there now, skip, or stop? [again/skip/STOP] `;
  const answer = (await ask(question, signal, terminal)).toLowerCase();
  return CHOICES.find((choice) => answer !== "" && choice !== "stop" && choice.startsWith(answer)) ?? "stop";
}

function countOf({ length }: readonly HistoryFile[]): string {
  return `${length} ${length === 1 ? "file" : "files"}`;
}

function namesOf(files: readonly HistoryFile[]): string {
  const shown = files.slice(0, NAMED).map(({ path }) => path);
  return `${shown.join(", ")}${files.length > NAMED ? ` and ${files.length - NAMED} more` : ""}`;
}
