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

/** A larger difference needs a person. */
export const CLOCK_OFF_MS = 60_000;

/** The other machine's time, and the own clock before and after. Unix milliseconds. */
export interface ClockSeen {
  readonly serverMs: number;
  /** The server's times have this step, and are rounded down. */
  readonly precisionMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

export interface ClockOffset {
  /** Beyond the round trip; positive: the other clock is ahead. */
  readonly offMs: number;
  /** How exact that is. */
  readonly withinMs: number;
}

export function clockOffset({ serverMs, precisionMs, beforeMs, afterMs }: ClockSeen): ClockOffset {
  const leastMs = serverMs - afterMs;
  const mostMs = serverMs + precisionMs - beforeMs;
  const offMs = leastMs > 0 ? leastMs : mostMs < 0 ? mostMs : 0;
  return { offMs, withinMs: Math.max(Math.abs(leastMs), Math.abs(mostMs)) };
}

/** Null while the clocks agree well enough. */
export function clockFault(service: string, seen: ClockSeen): { readonly words: string; readonly hint: string } | null {
  const { offMs } = clockOffset(seen);
  if (Math.abs(offMs) <= CLOCK_OFF_MS) return null;
  const side = offMs > 0 ? "behind" : "ahead of";
  const words =
    `the clock of this machine is ${spanWords(Math.abs(offMs))} ${side} that of the service ${service}: ` +
    `${timeWords(seen.afterMs)} here, ${timeWords(seen.serverMs)} there`;
  const hint =
    "Set the clock of this machine by NTP (such as `timedatectl set-ntp true`): late files, ages and the times of " +
    "runs depend on it. Where it is right, the clock of the service is wrong, or that of the proxy in front of it.";
  return { words, hint };
}

/** `2026-03-01 04:00:00 UTC` */
export function timeWords(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** `3 s`, `2 min 5 s`, `1 h 0 min`, `12 days`. */
export function spanWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} days`;
}
