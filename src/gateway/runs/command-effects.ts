/** The effects of an operator's command on a running gateway, beside those on its ledger. */
import type { Logger } from "#core/log.ts";
import type { LiveGateway } from "./commands/command.ts";
import type { Scheduler } from "./scheduler.ts";

interface CommandedWatcher {
  status(): { readonly drop: string };
  rematch(): Promise<unknown>;
  pollNow(): Promise<unknown>;
}

export function liveGateway(
  scheduler: Pick<Scheduler, "wake" | "withRunPaused" | "askAgain">,
  watchers: () => readonly CommandedWatcher[],
  services: { forgetStructure(): void },
  log: Logger,
): LiveGateway {
  const rematch = (selected: readonly CommandedWatcher[]) => {
    for (const watcher of selected)
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
      const ofDrop = watchers().filter((watcher) => watcher.status().drop === name);
      rematch(ofDrop);
      // The status of the drop has the faults of the poll.
      for (const watcher of ofDrop) watcher.pollNow().catch(() => undefined);
    },
    triggersChanged: () => rematch(watchers()),
  };
}
