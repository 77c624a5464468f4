/** Whether there is nothing left to do, for `--until-idle`. */
import type { Scheduler } from "./scheduler.ts";

/** What is asked of a drop's watcher. */
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

/** Nothing settles, every run is at rest (or stuck, where those are not waited for), and every drop was looked through after that. */
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
    const { running, runs } = await scheduler.pending();
    return running === 0 && runs.every(({ id }) => withoutStuck && scheduler.isStuck(id));
  };
  if (!dropsAtRest() || !(await runsAtRest())) return false;
  // Files may have come while the last ones were worked on.
  await Promise.allSettled(
    watchers
      .filter((watcher) => watcher.status().consecutiveFailures === 0)
      .map((watcher) => watcher.pollNow()),
  );
  // What is missing for the first time is decided by one more look.
  const decided = watchers.every((watcher) => watcher.status().missingCount === 0);
  return decided && dropsAtRest() && (await runsAtRest());
}
