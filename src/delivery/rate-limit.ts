/** How fast readings go to one service at most. What waits for its turn goes in the order in which it came. */
import type { Clock } from "../support/clock.ts";

export class Pace {
  readonly #perSecond: number | undefined;
  readonly #clock: Clock;
  /** When the next batch may go. */
  #freeAtMs = Number.NEGATIVE_INFINITY;

  /** Without a rate nothing waits. */
  constructor(readingsPerSecond: number | undefined, clock: Clock) {
    this.#perSecond = readingsPerSecond;
    this.#clock = clock;
  }

  get isLimited(): boolean {
    return this.#perSecond !== undefined;
  }

  /** Resolves when a batch of so many readings may go; the next waits for as long as they take. False when aborted. */
  async take(readings: number, signal: AbortSignal): Promise<boolean> {
    if (this.#perSecond === undefined) return true;
    const nowMs = this.#clock.monotonicMs();
    const turnMs = Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = turnMs + (readings / this.#perSecond) * 1000;
    return turnMs <= nowMs || (await this.#clock.sleep(turnMs - nowMs, signal));
  }
}
