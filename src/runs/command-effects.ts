/** What an order changes in a running gateway, beside its ledger. */
import type { Logger } from "../support/log.ts";
import type { LiveGateway } from "./command-handlers.ts";
import type { Conductor } from "./scheduler.ts";

interface OrderedWatcher {
  status(): { readonly drop: string };
  rematch(): Promise<unknown>;
  pollNow(): Promise<unknown>;
}

export function liveGateway(
  conductor: Pick<Conductor, "wake" | "withoutHands" | "askAgain">,
  watchers: () => readonly OrderedWatcher[],
  services: { forgetStructure(): void },
  log: Logger,
): LiveGateway {
  const rematch = (some: readonly OrderedWatcher[]) => {
    for (const watcher of some)
      watcher.rematch().then(
        () => conductor.wake(),
        (thrown) => log.warn({ err: thrown }, "files could not be offered to the triggers again"),
      );
  };
  return {
    withoutHands: (runId, work) => conductor.withoutHands(runId, work),
    onRun: (runId) => conductor.wake(runId),
    structureChanged() {
      services.forgetStructure();
      conductor.askAgain();
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
