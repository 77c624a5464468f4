/** What an order changes in a running gateway, beside its ledger. */
import type { Logger } from "../support/log.ts";
import type { LiveGateway } from "./command-handlers.ts";
import type { Scheduler } from "./scheduler.ts";

interface OrderedWatcher {
  status(): { readonly drop: string };
  rematch(): Promise<unknown>;
  pollNow(): Promise<unknown>;
}

export function liveGateway(
  scheduler: Pick<Scheduler, "wake" | "withRunPaused" | "askAgain">,
  watchers: () => readonly OrderedWatcher[],
  services: { forgetStructure(): void },
  log: Logger,
): LiveGateway {
  const rematch = (some: readonly OrderedWatcher[]) => {
    for (const watcher of some)
      watcher.rematch().then(
        () => scheduler.wake(),
        (thrown) => log.warn({ err: thrown }, "files could not be offered to the triggers again"),
      );
  };
  return {
    withRunPaused: (runId, work) => scheduler.withRunPaused(runId, work),
    onRun: (runId) => scheduler.wake(runId),
    structureChanged() {
      services.forgetStructure();
      scheduler.askAgain();
    },
    dropChanged(name) {
      const some = watchers().filter((watcher) => watcher.status().drop === name);
      rematch(some);
      // Its faults are in the status of the drop.
      for (const watcher of some) watcher.pollNow().catch(() => undefined);
    },
    triggersChanged: () => rematch(watchers()),
  };
}
