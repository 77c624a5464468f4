/** Limits a migration: its hours, its rate, and its yielding to the traffic of a running gateway. */
import type { Clock } from "#core/clock.ts";
import type { Admission } from "../../delivery/delivery.ts";
import { Pace } from "../../delivery/rate-limit.ts";
import type { Batch } from "../../model.ts";
import { type Rate, rateWords } from "./rate.ts";
import type { Window } from "./window.ts";

export interface ThrottleOptions {
  readonly rate: Rate | null;
  readonly window: Window | null;
  /** Whether a running gateway has work in progress for the service. */
  readonly isLive: (service: string) => boolean;
}

/** Between two checks of other traffic, in milliseconds. */
const CHECK_EVERY_MS = 250;
/** While other traffic never ends, one batch is sent each time this many milliseconds have passed. */
const GIVE_WAY_MAX_MS = 30_000;
const GIVE_WAY = "a running gateway delivers its own files first";

export class Throttle implements Admission {
  readonly #options: ThrottleOptions;
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #pace: Pace;
  /** The number of waiting batches, by reason. */
  readonly #waiting = new Map<string, number>();
  /** Batches that were handed in, to recognize repeated sends. */
  readonly #went = new WeakSet<object>();
  #retries = 0;
  #wentMs: number;
  #closed: string | null = null;

  /** When `stop` is aborted, all waits end, and nothing is sent. */
  constructor(options: ThrottleOptions, clock: Clock, stop: AbortSignal) {
    this.#options = options;
    this.#clock = clock;
    this.#stop = stop;
    this.#pace = new Pace(options.rate?.perSecond, clock);
    this.#wentMs = clock.monotonicMs();
  }

  /** Takes no files from now on. */
  close(reason: string): void {
    this.#closed ??= reason;
  }

  get closedBecause(): string | null {
    return this.#closed;
  }

  get isIntakeClosed(): boolean {
    return this.#closed !== null || this.#windowOpens() !== null;
  }

  /** Calls that were sent although their batch had been sent before, also by an earlier process. */
  get retries(): number {
    return this.#retries;
  }

  /** Why the migration is slower than it could be, in words. */
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
      // The wait for the rate may have taken long.
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
        // Clocks may be corrected, so that long waits are rechecked.
        ms: Math.min(60_000, this.#clock.now().until(opens).total("milliseconds")),
        words: this.#windowWords(opens),
      };
    const gaveWayMs = this.#clock.monotonicMs() - this.#wentMs;
    if (gaveWayMs >= GIVE_WAY_MAX_MS || !this.#options.isLive(service)) return null;
    return { ms: CHECK_EVERY_MS, words: GIVE_WAY };
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

/** The limits of a migration. */
export interface ThrottleSettings {
  readonly concurrency: number | undefined;
  readonly rate: Rate | null;
  readonly window: Window | null;
  /** From 0 to 1. */
  readonly errorsMax: number | null;
  /** Other work of the machine comes first. */
  readonly isBehind: boolean;
}
