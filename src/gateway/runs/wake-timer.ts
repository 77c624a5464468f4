/**
 * Decides when the scheduler scans for work: not too soon after the last scan, and at the latest at the
 * earliest time it was asked for.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "#core/clock.ts";

/**
 * From so many running steps on, scans start at least `CROWD_SCAN_MS` milliseconds apart: a scan reads much
 * for the few free slots. With fewer, a scan starts at once.
 */
export const CROWD = 12;
const CROWD_SCAN_MS = 80;

export class WakeTimer {
  readonly #clock: Clock;
  readonly #scan: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Ends the pause before a scan. */
  #endPause: () => void = () => undefined;
  #dueMs = 0;
  #scannedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, scan: () => void) {
    this.#clock = clock;
    this.#scan = scan;
  }

  /**
   * Resolves when the next scan may start. Steps that wait for the same commit end together, and one scan
   * serves them all.
   */
  async turn(running: number): Promise<void> {
    const pauseMs = this.#scannedMs + CROWD_SCAN_MS - performance.now();
    if (running >= CROWD && pauseMs > 0) await this.#pause(pauseMs);
    else await setImmediate();
    this.#scannedMs = performance.now();
  }

  /** Called when a step has ended: once few are running, the next scan waits for no others. */
  stepEnded(running: number): void {
    if (running < CROWD) this.#endPause();
  }

  within(ms: number): void {
    const due = this.#clock.monotonicMs() + ms;
    if (this.#timer !== undefined && this.#dueMs <= due) return;
    clearTimeout(this.#timer);
    this.#dueMs = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#scan();
    }, ms);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#endPause();
  }

  #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#endPause = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }
}
