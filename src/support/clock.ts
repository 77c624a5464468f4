/** The clock that stages are given, so that tests can bring their own. */
export interface Clock {
  /** Wall time, for records that people read. */
  now(): Temporal.Instant;
  /** Milliseconds that only ever increase; for durations, settling and deadlines. */
  monotonicMs(): number;
  /** Resolves after the time, or at once with `false` when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<boolean>;
}

/** Milliseconds; what `setTimeout` can hold. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Beside the instant, since to ask that costs more than all the rest. */
let current = { ms: 0, instant: Temporal.Instant.fromEpochMilliseconds(0) };

export const systemClock: Clock = {
  // To the millisecond, as everything is recorded: what happens within one shares an instant, which is several times cheaper.
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

/** What is recorded together has mostly the same instant, and to write a time costs more than to look at the last one. */
let latest: { readonly instant: Temporal.Instant | null; readonly text: string } = {
  instant: null,
  text: "",
};

/** `2026-03-01T00:15:00.000Z`: always milliseconds, so that text order is time order. */
export function isoInstant(instant: Temporal.Instant): string {
  if (instant !== latest.instant)
    latest = { instant, text: new Date(instant.epochMilliseconds).toISOString() };
  return latest.text;
}
