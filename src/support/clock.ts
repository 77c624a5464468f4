/** The clock that stages receive, so that tests can provide their own. */
export interface Clock {
  /** Wall time, for records that people read. */
  now(): Temporal.Instant;
  /** Milliseconds that only ever increase; for durations, settling and deadlines. */
  monotonicMs(): number;
  /** Resolves after the time, or at once with `false` when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<boolean>;
}

/** Milliseconds; the longest time that `setTimeout` accepts. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Cached beside the instant, since reading the clock costs more than the rest of `now`. */
let current = { ms: 0, instant: Temporal.Instant.fromEpochMilliseconds(0) };

export const systemClock: Clock = {
  // Rounded to the millisecond, as all records are: events within one share an instant, which is several times
  // cheaper.
  now() {
    const ms = Date.now();
    if (ms !== current.ms) current = { ms, instant: Temporal.Instant.fromEpochMilliseconds(ms) };
    return current.instant;
  },
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve(false);
      const stop = () => {
        clearTimeout(timer);
        resolve(false);
      };
      // A timer of more than 24 days would fire at once.
      const wait = (leftMs: number): NodeJS.Timeout =>
        setTimeout(
          () => {
            if (leftMs > TIMER_MAX_MS) {
              timer = wait(leftMs - TIMER_MAX_MS);
              return;
            }
            signal?.removeEventListener("abort", stop);
            resolve(true);
          },
          Math.min(leftMs, TIMER_MAX_MS),
        );
      let timer = wait(ms);
      signal?.addEventListener("abort", stop, { once: true });
    }),
};

/**
 * Events recorded together mostly have the same instant, and formatting a time costs more than comparing it with the
 * last one.
 */
let latest: { readonly instant: Temporal.Instant | null; readonly text: string } = {
  instant: null,
  text: "",
};

/** `2026-03-01T00:15:00.000Z`: always milliseconds, so that text order is time order. */
export function isoInstant(instant: Temporal.Instant): string {
  if (instant !== latest.instant) latest = { instant, text: new Date(instant.epochMilliseconds).toISOString() };
  return latest.text;
}
