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
  /** In work, the first of them. */
  readonly runs: readonly Run[];
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

  /** Such as `120,000 points/s, 3 min 5 s left`. */
  words(reached: Reached): string {
    this.#first ??= reached;
    const seconds = Math.max((this.#clock.monotonicMs() - this.#startMs) / 1000, 0.1);
    const rate = Math.round((reached.accepted - this.#first.accepted) / seconds);
    const bytes = reached.bytes - this.#first.bytes;
    const left =
      bytes === 0 ? "" : `, ${timeWords(((this.#total.bytes - reached.bytes) * seconds) / bytes)} left`;
    return `${count(rate)} points/s${reached.files < this.#total.files ? left : ""}`;
  }
}

/** `45 s`, `3 min 5 s`, `1 h 20 min`. */
export function timeWords(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function barsView(total: Amount, pace: Pace): ProgressView {
  const bars = new cliProgress.MultiBar(
    {
      format: "{name} [{bar}] {percentage}% {words}",
      barsize: 20,
      hideCursor: true,
      clearOnComplete: false,
    },
    cliProgress.Presets.shades_classic,
  );
  const all = bars.create(Math.max(1, total.bytes), 0, { name: nameCell("all files"), words: "" });
  const files = Array.from({ length: FILES_SHOWN }, () =>
    bars.create(1, 0, { name: nameCell(""), words: "" }),
  );
  const show = (reached: Reached) => {
    all.update(reached.bytes, {
      words: `${reached.files}/${total.files} files, ${count(reached.accepted)} points accepted, ${pace.words(reached)}`,
    });
    for (const [index, bar] of files.entries()) {
      const run = reached.runs[index];
      bar.setTotal(Math.max(1, run?.points.mapped ?? 1));
      bar.update(run?.points.accepted ?? 0, { name: nameCell(run?.path ?? ""), words: run?.state ?? "" });
    }
  };
  return {
    show,
    end(reached) {
      for (const bar of files) bars.remove(bar);
      show(reached);
      bars.stop();
    },
  };
}

function linesView(total: Amount, pace: Pace, clock: Clock, say: (line: string) => void): ProgressView {
  let nextMs = clock.monotonicMs() + LINE_EVERY_MS;
  const line = (reached: Reached) =>
    say(
      `${reached.files}/${total.files} files, ${sizeWords(reached.bytes)} of ${sizeWords(total.bytes)}; points: ${count(reached.mapped)} mapped, ${count(reached.accepted)} accepted; ${pace.words(reached)}`,
    );
  return {
    show(reached) {
      if (clock.monotonicMs() < nextMs) return;
      nextMs = clock.monotonicMs() + LINE_EVERY_MS;
      line(reached);
    },
    end: line,
  };
}

const NAME_WIDTH = 28;

function nameCell(text: string): string {
  return (text.length > NAME_WIDTH ? `…${text.slice(1 - NAME_WIDTH)}` : text).padEnd(NAME_WIDTH);
}

function count(points: number): string {
  return points.toLocaleString("en");
}
