/** How a migration holds itself back: its hours, its rate, and the way that it gives to what a running gateway brings. */
import type { Admission } from "../delivery/delivery.ts";
import { Pace } from "../delivery/rate-limit.ts";
import type { Batch } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { type Rate, rateWords } from "./rate.ts";
import type { Window } from "./window.ts";

export interface CareOptions {
  readonly rate: Rate | null;
  readonly window: Window | null;
  /** Whether a running gateway has something for the service on its way. */
  readonly isLive: (service: string) => boolean;
}

/** Between two looks at the traffic of others, in milliseconds. */
const LOOK_EVERY_MS = 250;
/** With traffic of others that never ends, a batch goes each time that so many milliseconds have passed. */
const GIVE_WAY_MAX_MS = 30_000;
const GIVE_WAY = "a running gateway delivers its own files first";

export class Throttle implements Admission {
  readonly #options: CareOptions;
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #pace: Pace;
  /** How many batches wait, by what for. */
  readonly #waiting = new Map<string, number>();
  /** Batches as they were handed in, also to be sent again. */
  readonly #went = new WeakSet<object>();
  #retries = 0;
  #wentMs: number;
  #closed: string | null = null;

  /** When `stop` is aborted nothing waits any more, and nothing goes. */
  constructor(options: CareOptions, clock: Clock, stop: AbortSignal) {
    this.#options = options;
    this.#clock = clock;
    this.#stop = stop;
    this.#pace = new Pace(options.rate?.perSecond, clock);
    this.#wentMs = clock.monotonicMs();
  }

  /** From now on no file is taken. */
  close(reason: string): void {
    this.#closed ??= reason;
  }

  get closedBecause(): string | null {
    return this.#closed;
  }

  get isIntakeClosed(): boolean {
    return this.#closed !== null || this.#windowOpens() !== null;
  }

  /** Calls that were let go although their batch had gone before, also before this process. */
  get retries(): number {
    return this.#retries;
  }

  /** What keeps the migration from going as fast as it could, in words. */
  waits(): readonly string[] {
    const opens = this.#windowOpens();
    return opens === null ? [...this.#waiting.keys()] : [this.#windowWords(opens)];
  }

  async admit(
    batch: Pick<Batch, "points" | "length" | "attempts">,
    service: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { points, length } = batch;
    const { rate } = this.#options;
    const ended = AbortSignal.any([signal, this.#stop]);
    const takePace = () => this.#pace.take(rate?.of === "bytes" ? length : points, ended);
    for (;;) {
      for (let wait = this.#wait(service); wait !== null; wait = this.#wait(service)) {
        const { ms, words } = wait;
        if (!(await this.#during(words, () => this.#clock.sleep(ms, ended)))) return false;
      }
      const isPaced = rate === null || (await this.#during(`the rate of ${rateWords(rate)}`, takePace));
      if (!isPaced || ended.aborted) return false;
      // The rate may have taken long.
      if (this.#wait(service) !== null) continue;
      this.#wentMs = this.#clock.monotonicMs();
      if (batch.attempts > 0 || this.#went.has(batch)) this.#retries += 1;
      this.#went.add(batch);
      return true;
    }
  }

  #wait(service: string): { readonly ms: number; readonly words: string } | null {
    const opens = this.#windowOpens();
    if (opens !== null)
      return {
        // Clocks are put right, so that long waits are looked at again.
        ms: Math.min(60_000, this.#clock.now().until(opens).total("milliseconds")),
        words: this.#windowWords(opens),
      };
    const gaveWayMs = this.#clock.monotonicMs() - this.#wentMs;
    if (gaveWayMs >= GIVE_WAY_MAX_MS || !this.#options.isLive(service)) return null;
    return { ms: LOOK_EVERY_MS, words: GIVE_WAY };
  }

  async #during<Value>(words: string, work: () => Promise<Value>): Promise<Value> {
    this.#waiting.set(words, (this.#waiting.get(words) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#waiting.get(words) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(words);
      else this.#waiting.set(words, left);
    }
  }

  #windowOpens(): Temporal.Instant | null {
    return this.#options.window?.opensAt(this.#clock.now()) ?? null;
  }

  #windowWords(opens: Temporal.Instant): string {
    return `outside of its hours until ${this.#options.window?.words(opens)}`;
  }
}
