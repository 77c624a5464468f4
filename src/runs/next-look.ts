/** When work is looked for next, should nothing else ask for it before: the earliest of the times that were named. */
import type { Clock } from "../support/clock.ts";

export class NextLook {
  readonly #clock: Clock;
  readonly #look: () => void;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
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
