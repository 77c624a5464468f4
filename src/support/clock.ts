/** The clock that stages are given, so that tests can bring their own. */
export interface Clock {
  /** Wall time, for records that people read. */
  now(): Temporal.Instant;
  /** Milliseconds that only ever increase; for durations, settling and deadlines. */
  monotonicMs(): number;
  /** Resolves after the time, or at once with `false` when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<boolean>;
}

export const systemClock: Clock = {
  now: () => Temporal.Now.instant(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve(false);
      const stop = () => {
        clearTimeout(timer);
        resolve(false);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve(true);
      }, ms);
      signal?.addEventListener("abort", stop, { once: true });
    }),
};

/** `2026-03-01T00:15:00.000Z`: always milliseconds, so that text order is time order. */
export function isoInstant(instant: Temporal.Instant): string {
  return instant.toString({ fractionalSecondDigits: 3 });
}
