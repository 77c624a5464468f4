/** Decides whether there is nothing left to do, for `--until-idle`. */
import type { Scheduler } from "./scheduler.ts";

/** The part of a drop's watcher that is used here. */
export interface IdleWatcher {
  status(): {
    readonly paused: string | null;
    readonly completePolls: number;
    readonly consecutiveFailures: number;
    readonly settlingCount: number;
    readonly leftCount: number;
    readonly missingCount: number;
  };
  pollNow(): Promise<unknown>;
}

/** A drop that failed this often in a row is not waited for. */
const FAILURES_GIVEN_UP = 3;

/**
 * True when no file settles, every run is at rest (or stuck, with `withoutStuck`), and every drop was polled
 * after that.
 */
export async function isIdle(
  watchers: readonly IdleWatcher[],
  scheduler: Pick<Scheduler, "pending" | "isBusy" | "isStuck">,
  withoutStuck = false,
): Promise<boolean> {
  const dropsAtRest = () =>
    watchers.every((watcher) => {
      const { paused, completePolls, consecutiveFailures, settlingCount, leftCount } = watcher.status();
      if (paused !== null) return true;
      if (consecutiveFailures > 0) return consecutiveFailures >= FAILURES_GIVEN_UP;
      return completePolls > 0 && settlingCount === 0 && leftCount === 0;
    });
  const runsAtRest = async () => {
    if (scheduler.isBusy) return false;
    const runs = await scheduler.pending();
    return runs.every(({ id }) => withoutStuck && scheduler.isStuck(id));
  };
  if (!dropsAtRest() || !(await runsAtRest())) return false;
  // Files may have come while the last ones were worked on.
  await Promise.allSettled(
    watchers.filter((watcher) => watcher.status().consecutiveFailures === 0).map((watcher) => watcher.pollNow()),
  );
  // A file that is missing for the first time is decided by one more poll.
  const decided = watchers.every((watcher) => watcher.status().missingCount === 0);
  return decided && dropsAtRest() && (await runsAtRest());
}
