/** The progress of a migration in words, and as plain lines where there is no terminal. */

import type { Clock } from "#core/clock.ts";
import { grouped } from "#core/text.ts";
import type { Amount, ProgressView, Reached } from "#gateway/migration/run/progress.ts";
import { sizeWords } from "../output.ts";

const LINE_EVERY_MS = 5_000;

/** The rate covers this period, so that a service that becomes slow shows at once. */
const RATE_OF_MS = 30_000;
const SAMPLE_EVERY_MS = 1_000;

/** The rate, in this process. */
export class Pace {
  readonly #total: Amount;
  readonly #clock: Clock;
  readonly #startMs: number;
  /** Samples of the last period, oldest first. */
  #samples: { readonly ms: number; readonly accepted: number }[] = [];
  #first: Reached | null = null;

  constructor(total: Amount, clock: Clock) {
    this.#total = total;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  take(reached: Reached): void {
    const ms = this.#clock.monotonicMs();
    if (this.#first === null) this.#samples.push({ ms: this.#startMs, accepted: reached.accepted });
    this.#first ??= reached;
    if (ms - (this.#samples.at(-1)?.ms ?? 0) < SAMPLE_EVERY_MS) return;
    this.#samples.push({ ms, accepted: reached.accepted });
    const since = this.#samples.findIndex((sample) => ms - sample.ms <= RATE_OF_MS);
    this.#samples = this.#samples.slice(since);
  }

  /** Such as `120,000 points/s`: of the last period, or at the end of the whole time. */
  rate({ accepted }: Reached, isEnd: boolean): string {
    const from = isEnd ? { ms: this.#startMs, accepted: this.#first?.accepted ?? 0 } : this.#samples[0];
    const seconds = (this.#clock.monotonicMs() - (from?.ms ?? this.#startMs)) / 1000;
    return `${grouped(Math.round((accepted - (from?.accepted ?? 0)) / Math.max(seconds, 0.1)))} points/s`;
  }

  /** Such as `3 min 5 s left`; empty when it is unknown. */
  left(reached: Reached): string {
    const bytes = reached.bytes - (this.#first?.bytes ?? 0);
    if (bytes <= 0 || reached.files >= this.#total.files) return "";
    const seconds = (this.#clock.monotonicMs() - this.#startMs) / 1000;
    return `${timeWords(((this.#total.bytes - reached.bytes) * seconds) / bytes)} left`;
  }
}

/** `45 s`, `3 min 5 s`, `1 h 20 min`. */
export function timeWords(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** `3 calls made again`; empty when there were none. */
export function retryWords({ retries }: Reached): string {
  return retries === 0 ? "" : `${grouped(retries)} ${retries === 1 ? "call" : "calls"} made again`;
}

/** `waits: the service hub: connection refused; 2 files are held`; empty when nothing waits. */
export function waitWords({ waits, held }: Reached): string {
  const all = held === 0 ? waits : [...waits, `${held} ${held === 1 ? "file is" : "files are"} held`];
  return all.length === 0 ? "" : `waits: ${all.join("; ")}`;
}

export function linesView(total: Amount, pace: Pace, clock: Clock, say: (line: string) => void): ProgressView {
  let nextMs = clock.monotonicMs() + LINE_EVERY_MS;
  const line = (reached: Reached, isEnd: boolean) => {
    const words = [
      `${reached.files}/${total.files} files, ${sizeWords(reached.bytes)} of ${sizeWords(total.bytes)}`,
      `points: ${grouped(reached.mapped)} mapped, ${grouped(reached.accepted)} accepted`,
      [pace.rate(reached, isEnd), pace.left(reached)].filter((one) => one !== "").join(", "),
      retryWords(reached),
      waitWords(reached),
    ];
    say(words.filter((one) => one !== "").join("; "));
  };
  let waited = "";
  return {
    show(reached) {
      pace.take(reached);
      // A new reason is printed at once.
      const waits = waitWords(reached);
      const isNew = waits !== "" && waits !== waited;
      if (clock.monotonicMs() < nextMs && !isNew) return;
      waited = waits;
      nextMs = clock.monotonicMs() + LINE_EVERY_MS;
      line(reached, false);
    },
    note: say,
    end(reached) {
      if (reached !== null) line(reached, true);
    },
  };
}
