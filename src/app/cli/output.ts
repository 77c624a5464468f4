/** Prints results and errors on a terminal. Colour only on a terminal. */
import { styleText } from "node:util";
import Table from "cli-table3";
import { ConfigError, HeadgateError, wordsOf } from "#core/errors.ts";
import { withSourcePlaces } from "#core/package/source-places.ts";
import { masked } from "#core/secrets.ts";
import { isWorthARestart } from "#core/start-fault.ts";
import { columnWords, grouped } from "#core/text.ts";
import type { RejectedReason, Run, RunState, Summary, TargetFinding } from "#gateway/model.ts";
import { ALL_RUN_STATES, FILE_STANDINGS, RUN_STATES, type RunFacts } from "#gateway/states.ts";

export type Style = Parameters<typeof styleText>[0];

/** The same bytes came before at this path (`errors.md`): the run was given up for this reason only. */
const CAME_BEFORE = "HG-RUN-001";

export const SHOWN_STATES: readonly ShownState[] = [...ALL_RUN_STATES, "duplicate"];

const STYLES: Readonly<Record<RunFacts["tone"], Style | null>> = {
  plain: null,
  good: "green",
  warning: "yellow",
  bad: "red",
  faint: "dim",
};

export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(style, text, { stream });
}

/** A list that is cut must not look like all there is; on stderr beside JSON. */
export function noteCut(shown: number, all: number, what: string, how: string, isJson = false): void {
  const words = `${grouped(shown)} of ${grouped(all)} ${what}; ${how}\n`;
  if (shown < all) (isJson ? process.stderr : process.stdout).write(words);
}

export function print(text: string): void {
  process.stdout.write(`${shown(masked(text), process.stdout)}\n`);
}

const ESCAPE = String.fromCharCode(0x1b);

/**
 * Names of files and messages of services may hold control characters that command a terminal; only line breaks, tabs
 * and the colours of this program pass.
 */
export function shown(text: string, stream: { readonly isTTY?: boolean }): string {
  if (stream.isTTY !== true) return text;
  const isOurs = (one: string, at: number) =>
    one === "\n" || one === "\t" || (one === ESCAPE && /^\[[\d;]*m/.test(text.slice(at + 1, at + 16)));
  return text.replace(/\p{Cc}/gu, (one: string, at: number) =>
    isOurs(one, at) ? one : `\\x${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
}

/** The person answered no: as JSON `{"done":false,"why":…}`. */
export function printDeclined(why: string, { json }: { readonly json?: boolean }): void {
  if (json === true) printJson({ done: false, why });
  else print(why);
}

/** A concern that a person has to check. */
export function printConcern(concern: string): void {
  process.stderr.write(`${styled("yellow", "needs you", process.stderr)}: ${masked(concern)}\n`);
}

/** Columns aligned, no lines between. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const none = {
    top: "",
    "top-mid": "",
    "top-left": "",
    "top-right": "",
    bottom: "",
    "bottom-mid": "",
    "bottom-left": "",
    "bottom-right": "",
  };
  const table = new Table({
    head: head.map((name) => styled("bold", name)),
    chars: {
      ...none,
      left: "",
      "left-mid": "",
      mid: "",
      "mid-mid": "",
      right: "",
      "right-mid": "",
      middle: "  ",
    },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
  table.push(...rows.map((row) => [...row]));
  const lines = table.toString().split("\n");
  print(lines.map((line) => line.trimEnd()).join("\n"));
}

let isJsonRequested = false;

/** Prints errors from now on as one line with a JSON object, for programs. */
export function printErrorsAsJson(wanted: boolean): void {
  isJsonRequested = wanted;
}

/** The fault, its reason, and what to do. */
export function printError(thrown: unknown): void {
  const error = (line: string) => process.stderr.write(`${shown(masked(line), process.stderr)}\n`);
  if (isJsonRequested) return void error(JSON.stringify({ error: errorFacts(thrown) }));
  if (!(thrown instanceof HeadgateError)) {
    error(
      `${styled("red", "failed", process.stderr)}: ` +
        `${thrown instanceof Error ? withSourcePlaces(thrown.stack ?? thrown.message) : wordsOf(thrown)}`,
    );
    return;
  }
  error(`${styled("red", "failed", process.stderr)}: ${thrown.operation} ${thrown.subject}`);
  error(`   why: ${wordsOf(thrown)} [${thrown.code}]`);
  error(`    do: ${thrown.advice}`);
}

/** For daemons: a fault that may pass without a person ends with 1, so that a service manager starts them again. */
export function passingAsFailure(thrown: unknown): number {
  if (!isWorthARestart(thrown)) throw thrown;
  printError(thrown);
  return 1;
}

/** `code`, `operation`, `subject`, `message` and `hint`; of a bug only the message. */
function errorFacts(thrown: unknown): Readonly<Record<string, string>> {
  if (!(thrown instanceof HeadgateError)) return { message: wordsOf(thrown) };
  const { code, operation, subject, advice } = thrown;
  return { code, operation, subject, message: wordsOf(thrown), hint: advice };
}

export function exitCodeOf(thrown: unknown): number {
  return thrown instanceof ConfigError ? 2 : 1;
}

/**
 * When the service was not compared, the stored points are unknown. `files 7: 5 delivered, 1 quarantined, 1 unmatched
 * · points 12345 mapped, 12345 accepted, 12345 stored, 0 rejected`
 */
export function summaryLine(summary: Summary, isStoredKnown = true): string {
  const counts = FILE_STANDINGS.flatMap((standing) => {
    const count = summary.files[standing] ?? 0;
    return count === 0 ? [] : [`${count} ${standing}`];
  });
  const total = FILE_STANDINGS.reduce((sum, standing) => sum + (summary.files[standing] ?? 0), 0);
  const { mapped, accepted, stored, rejected } = summary.points;
  const files = `files ${total}${counts.length === 0 ? "" : `: ${counts.join(", ")}`}`;
  return (
    `${files} · points ${mapped} mapped, ${accepted} accepted, ` +
    `${isStoredKnown ? `${stored} stored` : "stored unknown"}, ${rejected} rejected`
  );
}

/** Milliseconds in a unit of time, for times in seconds, milliseconds or nanoseconds. */
const TIME_UNITS = [1000, 1, 1e-6];
const EARLIEST_MS = Date.UTC(1980);
const LATEST_MS = Date.UTC(2200);

/**
 * `time 1795236524972665825` as an instant, in the unit that gives a present-day date; other tokens of servers stay
 * unchanged.
 */
export function withReadableTime(detail: string): string {
  return detail.replace(/\btime (\d+(?:\.\d+)?)(?![\w.:-])/g, (all, number: string) => {
    // Servers also write dates as digits: 20260301001500.
    if (/^(19|20)\d{12}(\.|$)/.test(number)) return all;
    const ms = TIME_UNITS.map((unit) => Number(number) * unit).find((one) => one >= EARLIEST_MS && one < LATEST_MS);
    return ms === undefined ? all : `time ${new Date(ms).toISOString()}`;
  });
}

/** `1.2 MB`, in powers of ten. */
export function sizeWords(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[power]}`;
}

/** One line for each reason: `812 × … is no number (column value)`. */
export function reasonLines(reasons: readonly RejectedReason[]): string[] {
  return reasons.map(
    ({ message, column, count }) => `${count} × ${message}${column === undefined ? "" : ` (${columnWords(column)})`}`,
  );
}

const TARGETS_SHOWN = 20;

/** One line for each target: `missing  sourceEan=1 mappingConfig=a: there is no source … (96 readings)`. */
export function targetLines(targets: readonly TargetFinding[]): string[] {
  const lines = targets
    .slice(0, TARGETS_SHOWN)
    .map(({ what, target, words, points }) => `${what}: ${target}: ${words} (${points} readings)`);
  const more = targets.length - TARGETS_SHOWN;
  return more > 0 ? [...lines, `… and ${more} more (--json shows them)`] : lines;
}

// The state of a run as a person reads it.

export type ShownState = RunState | "duplicate";

/** In the colour that says how well a run stands. */
export function inTone(state: ShownState): string {
  const style = STYLES[state === "duplicate" ? "faint" : RUN_STATES[state].tone];
  return style === null ? state : styled(style, state);
}

/** The run's own state, but *duplicate* for one that was given up because its bytes had come before. */
export function shownState({ state, reason }: Pick<Run, "state" | "reason">): ShownState {
  return state === "cancelled" && reason?.code === CAME_BEFORE ? "duplicate" : state;
}
