/** A look that many callers ask for: one at a time, and for callers who take an older result, one in a while. */
export interface SharedLook<Found> {
  /** A look that ends after the call; one that is under way is shared. */
  now(): Promise<Found>;
  /** The result of a look that began at most so many milliseconds ago, also when it failed. */
  within(ms: number): Promise<Found>;
}

export function shareLook<Found>(
  look: () => Promise<Found>,
  nowMs: () => number = () => performance.now(),
): SharedLook<Found> {
  let underWay: Promise<Found> | null = null;
  let latest: Promise<Found> | null = null;
  let beganMs = Number.NEGATIVE_INFINITY;
  const now = () => {
    if (underWay !== null) return underWay;
    beganMs = nowMs();
    const begun = look().finally(() => {
      underWay = null;
    });
    underWay = begun;
    latest = begun;
    return begun;
  };
  return { now, within: (ms) => (latest !== null && nowMs() - beganMs < ms ? latest : now()) };
}
