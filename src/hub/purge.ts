/** Removes what its time has passed. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { HubOptions } from "./options.ts";
import type { HubStore } from "./store/store.ts";
import { isoOfMs } from "./time.ts";

const PURGE_MS = 3_600_000;
/** Usage of earlier days is no longer needed. */
const USAGE_MS = 2 * 86_400_000;

/** Records of operations are purged after their time: at start, and every hour. */
export function startPurge(
  store: HubStore,
  { keep, sessions }: HubOptions,
  log: Logger,
  clock: Clock,
): () => Promise<void> {
  const closing = new AbortController();
  const run = async () => {
    do {
      const nowMs = clock.now().epochMilliseconds;
      try {
        // An operation stays as long as its key, and would look unfinished without its outcome.
        const outcomes = Math.max(keep.outcomes, keep.idempotencyKeys);
        await store.operations.purge(nowMs - keep.idempotencyKeys, nowMs - outcomes);
        await store.calculations.purge(nowMs - outcomes);
        await store.refreshTokens.purge(nowMs);
        await store.usage.purge(isoOfMs(nowMs - USAGE_MS).slice(0, 10));
        const undelivered = Math.max(keep.events, keep.undeliveredEvents);
        await store.events.purge({ beforeMs: nowMs - keep.events, undeliveredBeforeMs: nowMs - undelivered });
        await store.alarms.alarms.purge(nowMs - keep.alarmHistory);
        await store.sessions.purge(nowMs, nowMs - sessions.idle);
      } catch (thrown) {
        log.error({ err: thrown }, "old records of operations could not be removed; this is tried again");
      }
    } while (await clock.sleep(PURGE_MS, closing.signal));
  };
  const running = run();
  return async () => {
    closing.abort();
    await running;
  };
}
