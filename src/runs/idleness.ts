/** Whether there is nothing left to do, for `--until-idle`. */
import type { Conductor } from "./conductor.ts";

/** What is asked of a drop's watcher. */
export interface IdleWatcher {
  status(): {
    readonly paused: string | null;
    readonly completePolls: number;
    readonly consecutiveFailures: number;
    readonly settlingCount: number;
    readonly leftCount: number;
  };
  pollNow(): Promise<unknown>;
}

/** A drop that failed this often in a row is not waited for. */
const FAILURES_GIVEN_UP = 3;

/** Nothing settles, every run is at rest, and every drop was looked through after that. */
export async function isIdle(
  watchers: readonly IdleWatcher[],
  conductor: Pick<Conductor, "pending" | "isBusy">,
): Promise<boolean> {
  const dropsAtRest = () =>
    watchers.every((watcher) => {
      const { paused, completePolls, consecutiveFailures, settlingCount, leftCount } = watcher.status();
      if (paused !== null) return true;
      if (consecutiveFailures > 0) return consecutiveFailures >= FAILURES_GIVEN_UP;
      return completePolls > 0 && settlingCount === 0 && leftCount === 0;
    });
  const runsAtRest = async () => {
    if (conductor.isBusy) return false;
    const { inHand, runs } = await conductor.pending();
    return inHand === 0 && runs.length === 0;
  };
  if (!dropsAtRest() || !(await runsAtRest())) return false;
  // Files may have come while the last ones were worked on.
  await Promise.allSettled(
    watchers
      .filter((watcher) => watcher.status().consecutiveFailures === 0)
      .map((watcher) => watcher.pollNow()),
  );
  return dropsAtRest() && (await runsAtRest());
}
