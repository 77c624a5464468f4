/**
 * Shares one asynchronous query between many callers: at most one runs at a time, and callers that accept an older
 * result share one for a while.
 */
export interface SharedQuery<Found> {
  /** The result of a query that ends after the call; one that is running is shared. */
  now(): Promise<Found>;
  /** The result of a query that begins after the call; several callers share one. */
  next(): Promise<Found>;
  /** The result of a query that began at most `ms` milliseconds ago, also when it failed. */
  within(ms: number): Promise<Found>;
}

export function shareQuery<Found>(
  query: () => Promise<Found>,
  nowMs: () => number = () => performance.now(),
): SharedQuery<Found> {
  let running: Promise<Found> | null = null;
  let queued: Promise<Found> | null = null;
  let latest: Promise<Found> | null = null;
  let beganMs = Number.NEGATIVE_INFINITY;
  const now = () => {
    if (running !== null) return running;
    beganMs = nowMs();
    const begun = query().finally(() => {
      running = null;
    });
    running = begun;
    latest = begun;
    return begun;
  };
  const next = () => {
    if (running === null) return now();
    queued ??= running
      .catch(() => undefined)
      .then(() => {
        queued = null;
        return now();
      });
    return queued;
  };
  return { now, next, within: (ms) => (latest !== null && nowMs() - beganMs < ms ? latest : now()) };
}
