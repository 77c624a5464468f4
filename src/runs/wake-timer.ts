/** When work is looked for next: not too soon after the last look, and should nothing else ask for it, at the earliest of the times that were named. */
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../support/clock.ts";

/**
 * A look reads much for the few hands that are free. While as many runs are in hand, looks begin no closer to each other than this, in
 * milliseconds; who is alone is seen at once.
 */
export const CROWD = 12;
const CROWD_LOOK_MS = 40;

export class WakeTimer {
  readonly #clock: Clock;
  readonly #look: () => void;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  /** Resolves when one may look. Steps that wait for one commit end together, and one look serves them all. */
  async turn(running: number): Promise<void> {
    const pauseMs = this.#lookedMs + CROWD_LOOK_MS - performance.now();
    if (running >= CROWD && pauseMs > 0) await sleep(pauseMs);
    else await setImmediate();
    this.#lookedMs = performance.now();
  }

  within(ms: number): void {
    const due = this.#clock.monotonicMs() + ms;
    if (this.#timer !== undefined && this.#dueMs <= due) return;
    clearTimeout(this.#timer);
    this.#dueMs = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#look();
    }, ms);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
