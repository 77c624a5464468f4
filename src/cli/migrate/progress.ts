/** How far a migration has come: bars on a terminal, plain lines elsewhere. */
import cliProgress from "cli-progress";
import type { Run } from "../../model.ts";
import type { Clock } from "../../support/clock.ts";
import { sizeWords } from "../output.ts";

export interface Amount {
  readonly files: number;
  readonly bytes: number;
}

/** What has come so far. */
export interface Reached extends Amount {
  readonly mapped: number;
  readonly accepted: number;
  /** Files that wait for structure, a unit or a person. */
  readonly held: number;
  /** What keeps it from going on, or from going faster, in words. */
  readonly waits: readonly string[];
  /** In work, the first of them. */
  readonly runs: readonly ShownRun[];
}

export interface ShownRun extends Pick<Run, "path" | "state" | "points"> {
  /** What it waits for, in words. */
  readonly waits: string | null;
}

export interface ProgressView {
  show(reached: Reached): void;
  end(reached: Reached): void;
}

/** Bars of single files below the one of all. */
export const FILES_SHOWN = 4;
const LINE_EVERY_MS = 5_000;

/** `say` null: on a terminal, which can be written over. */
export function progressView(
  total: Amount,
  clock: Clock,
  say: ((line: string) => void) | null,
): ProgressView {
  const pace = new Pace(total, clock);
  return say === null ? barsView(total, pace) : linesView(total, pace, clock, say);
}

/** Since the start of this process. */
class Pace {
  readonly #total: Amount;
  readonly #clock: Clock;
  readonly #startMs: number;
  #first: Reached | null = null;

  constructor(total: Amount, clock: Clock) {
    this.#total = total;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  /** Such as `120,000 points/s` and `3 min 5 s left`, which is empty when that cannot be told. */
  words(reached: Reached): { readonly rate: string; readonly left: string } {
    this.#first ??= reached;
    const seconds = Math.max((this.#clock.monotonicMs() - this.#startMs) / 1000, 0.1);
    const rate = Math.round((reached.accepted - this.#first.accepted) / seconds);
    const bytes = reached.bytes - this.#first.bytes;
    const isUnderWay = bytes > 0 && reached.files < this.#total.files;
    const left = isUnderWay
      ? `${timeWords(((this.#total.bytes - reached.bytes) * seconds) / bytes)} left`
      : "";
    return { rate: `${count(rate)} points/s`, left };
  }
}

/** `45 s`, `3 min 5 s`, `1 h 20 min`. */
export function timeWords(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** Lines above the bars of single files: the bar of all, what has come, and what is waited for. */
function barsView(total: Amount, pace: Pace): ProgressView {
  const bars = new cliProgress.MultiBar(
    { hideCursor: true, clearOnComplete: false, barCompleteChar: "█", barIncompleteChar: "░" },
    cliProgress.Presets.shades_classic,
  );
  const { bar, text } = formats();
  const all = bars.create(Math.max(1, total.bytes), 0, { name: "", words: "" }, bar);
  const counts = bars.create(1, 0, { words: "" }, text);
  const waits = bars.create(1, 0, { words: "" }, text);
  const files = Array.from({ length: FILES_SHOWN }, () => bars.create(1, 0, { name: "", words: "" }, bar));
  const show = (reached: Reached) => {
    const width = process.stdout.columns ?? WIDTH_UNKNOWN;
    const nameWidth = Math.max(12, Math.min(40, Math.floor(width / 3)));
    // Percentage, brackets, and room for words.
    const barsize = Math.max(10, Math.min(40, Math.floor(width / 4)));
    const left = width - nameWidth - barsize - BAR_EXTRAS;
    const { rate, left: remaining } = pace.words(reached);
    all.update(reached.bytes, { name: cell("all files", nameWidth), barsize, words: cut(remaining, left) });
    const points = `${count(reached.accepted)} of ${count(reached.mapped)} mapped points accepted`;
    counts.update(0, {
      words: cut(`${reached.files}/${total.files} files · ${points} · ${rate}`, width - 1),
    });
    waits.update(0, { words: cut(waitWords(reached), width - 1) });
    for (const [index, one] of files.entries()) {
      const run = reached.runs[index];
      one.setTotal(Math.max(1, run?.points.mapped ?? 1));
      const words = run === undefined ? "" : (run.waits ?? run.state);
      const name = cell(run?.path ?? "", nameWidth);
      one.update(run?.points.accepted ?? 0, {
        name,
        barsize,
        isShown: run !== undefined,
        words: cut(words, left),
      });
    }
  };
  return {
    show,
    end(reached) {
      for (const one of files) bars.remove(one);
      show(reached);
      bars.stop();
    },
  };
}

/** Columns of a terminal that does not tell. */
const WIDTH_UNKNOWN = 80;
/** Characters of a line beside its name, its bar and its words. */
const BAR_EXTRAS = 11;

/** How a line with a bar and one without are drawn; the width is known when they are. */
function formats(): Readonly<Record<"bar" | "text", Partial<cliProgress.Options>>> {
  const bar: cliProgress.GenericFormatter = (_options, { progress }, payload) => {
    const { name, words, barsize, isShown = true } = payload as BarWords;
    if (!isShown) return "";
    const full = Math.round(Math.min(1, progress) * barsize);
    const percent = `${Math.floor(Math.min(1, progress) * 100)}`.padStart(3);
    return `${name} [${"█".repeat(full)}${"░".repeat(barsize - full)}] ${percent} % ${words}`;
  };
  return { bar: { format: bar }, text: { format: (_options, _state, payload) => String(payload.words) } };
}

interface BarWords {
  readonly name: string;
  readonly words: string;
  readonly barsize: number;
  readonly isShown?: boolean;
}

/** `waits: the service hub: connection refused; 2 files are held`; empty when nothing is waited for. */
function waitWords({ waits, held }: Reached): string {
  const all = held === 0 ? waits : [...waits, `${held} ${held === 1 ? "file is" : "files are"} held`];
  return all.length === 0 ? "" : `waits: ${all.join("; ")}`;
}

function linesView(total: Amount, pace: Pace, clock: Clock, say: (line: string) => void): ProgressView {
  let nextMs = clock.monotonicMs() + LINE_EVERY_MS;
  const line = (reached: Reached) => {
    const { rate, left } = pace.words(reached);
    const words = [
      `${reached.files}/${total.files} files, ${sizeWords(reached.bytes)} of ${sizeWords(total.bytes)}`,
      `points: ${count(reached.mapped)} mapped, ${count(reached.accepted)} accepted`,
      left === "" ? rate : `${rate}, ${left}`,
      waitWords(reached),
    ];
    say(words.filter((one) => one !== "").join("; "));
  };
  let waited = "";
  return {
    show(reached) {
      // What is newly waited for is told at once.
      const waits = waitWords(reached);
      const isNew = waits !== "" && waits !== waited;
      if (clock.monotonicMs() < nextMs && !isNew) return;
      waited = waits;
      nextMs = clock.monotonicMs() + LINE_EVERY_MS;
      line(reached);
    },
    end: line,
  };
}

/** The end of a name says more than its beginning. */
function cell(text: string, width: number): string {
  return (text.length > width ? `…${text.slice(1 - width)}` : text).padEnd(width);
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;
}

function count(points: number): string {
  return points.toLocaleString("en");
}
