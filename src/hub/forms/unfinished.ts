/**
 * Changes of forms and removals that a hub began before it ended, or that a fault of the database has stopped, are
 * finished; what a file of master data has created until then is removed.
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { HubStore } from "../store/store.ts";
import { fitOf } from "./definition.ts";

const LOOK_MS = 10_000;

/** At the start, and again after a while. Returns the end of it. */
export function finishForms({ forms, reports, structure }: HubStore, log: Logger, clock: Clock): () => Promise<void> {
  const closing = new AbortController();
  const run = async () => {
    let isStart = true;
    do {
      try {
        await reports.undoPlans(isStart);
        isStart = false;
        await forms.resume(fitOf(true), closing.signal);
        await structure.resumeRemovals(closing.signal);
      } catch (thrown) {
        log.error(
          { err: thrown },
          "changes of forms, removals and files of master data could not be finished; this is tried again",
        );
      }
    } while (await clock.sleep(LOOK_MS, closing.signal));
  };
  const running = run();
  return async () => {
    closing.abort();
    await running;
  };
}
