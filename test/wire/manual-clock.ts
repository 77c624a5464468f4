import type { Clock } from "#core/clock.ts";

/** A clock that a test moves. */
export class ManualClock implements Clock {
  #ms = 1_000_000;

  now(): Temporal.Instant {
    return Temporal.Instant.fromEpochMilliseconds(1_780_000_000_000 + this.#ms);
  }

  monotonicMs(): number {
    return this.#ms;
  }

  async sleep(ms: number): Promise<boolean> {
    this.#ms += ms;
    return true;
  }

  advance(ms: number): void {
    this.#ms += ms;
  }
}
