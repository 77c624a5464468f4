/** Readers of feeds that wait for an event: one query for all of them, as long as there are any. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { EventStore } from "../store/events/events.ts";

export interface EventWatch {
  /**
   * Resolves when the account has an event after `id`, or after the time, or at the end of the signal; at once with
   * false where too many wait, or the hub ends.
   */
  wait(accountId: number, id: number, ms: number, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

const POLL_MS = 500;
/** Further readers get their answer at once; those of one account leave room for the others. */
const WAITING_MAX = 5_000;
const ACCOUNT_WAITING_MAX = 100;

interface Waiting {
  readonly accountId: number;
  readonly id: number;
  readonly end: () => void;
}

export function createEventWatch(
  events: Pick<EventStore, "newest">,
  { log, clock }: { readonly log: Logger; readonly clock: Clock },
): EventWatch {
  const closing = new AbortController();
  const waiting = new Set<Waiting>();
  let running: Promise<void> | null = null;
  const poll = async (): Promise<void> => {
    const newest = await events.newest([...new Set([...waiting].map(({ accountId }) => accountId))]);
    for (const one of waiting) if ((newest.get(one.accountId) ?? 0) > one.id) one.end();
  };
  const run = async (): Promise<void> => {
    while (waiting.size > 0 && (await clock.sleep(POLL_MS, closing.signal)))
      try {
        await poll();
      } catch (thrown) {
        log.warn({ err: thrown }, "readers of events wait longer, since the store does not answer");
      }
    running = null;
  };
  return {
    async wait(accountId, id, ms, signal) {
      const own = waiting.values().filter((one) => one.accountId === accountId);
      const isFull = waiting.size >= WAITING_MAX || [...own].length >= ACCOUNT_WAITING_MAX;
      if (isFull || closing.signal.aborted) return false;
      const ending = new AbortController();
      const one = { accountId, id, end: () => ending.abort() };
      waiting.add(one);
      running ??= run();
      await clock.sleep(ms, AbortSignal.any([ending.signal, closing.signal, signal]));
      waiting.delete(one);
      return !closing.signal.aborted;
    },
    async close() {
      closing.abort();
      await running;
    },
  };
}
