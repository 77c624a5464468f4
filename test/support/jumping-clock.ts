/** The system's clock, which a test can set forward: whoever sleeps until then wakes at once. */
import { type Clock, systemClock } from "#core/clock.ts";

export class JumpingClock implements Clock {
  #aheadMs = 0;
  /** Of the time of day. */
  #dayAheadMs = 0;
  readonly #sleepers = new Set<() => void>();

  now(): Temporal.Instant {
    return systemClock.now().add({ milliseconds: this.#dayAheadMs });
  }

  monotonicMs(): number {
    return systemClock.monotonicMs() + this.#aheadMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
    const dueMs = this.monotonicMs() + ms;
    while (signal?.aborted !== true) {
      const leftMs = dueMs - this.monotonicMs();
      if (leftMs <= 0) return true;
      await this.#pause(leftMs, signal);
    }
    return false;
  }

  /** Sets the clock forward. */
  jump(ms: number): void {
    this.#aheadMs += ms;
    this.#dayAheadMs += ms;
    for (const wake of [...this.#sleepers]) wake();
  }

  /** Sets the time of day right, as that of other processes is. */
  setRight(): void {
    this.#dayAheadMs = 0;
  }

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort();
    this.#sleepers.add(wake);
    signal?.addEventListener("abort", wake, { once: true });
    await systemClock.sleep(ms, woken.signal);
    signal?.removeEventListener("abort", wake);
    this.#sleepers.delete(wake);
  }
}
