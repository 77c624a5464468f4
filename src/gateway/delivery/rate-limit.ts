/** Limits the rate of readings to one service. Batches pass in the order in which they came. */
import type { Clock } from "#core/clock.ts";

export class Pace {
  readonly #perSecond: number | undefined;
  readonly #clock: Clock;
  /** When the next batch may start. */
  #freeAtMs = Number.NEGATIVE_INFINITY;

  /** Without a rate there is no wait. */
  constructor(readingsPerSecond: number | undefined, clock: Clock) {
    this.#perSecond = readingsPerSecond;
    this.#clock = clock;
  }

  get isLimited(): boolean {
    return this.#perSecond !== undefined;
  }

  /**
   * Resolves when a batch of so many readings may start; the next one waits as long as they take. False when aborted.
   */
  async take(readings: number, signal: AbortSignal): Promise<boolean> {
    if (this.#perSecond === undefined) return true;
    const nowMs = this.#clock.monotonicMs();
    const startMs = Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = startMs + (readings / this.#perSecond) * 1000;
    return startMs <= nowMs || (await this.#clock.sleep(startMs - nowMs, signal));
  }
}
