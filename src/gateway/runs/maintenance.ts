/**
 * Once a day the ledger and the spool remove what they no longer need; every minute files are put away that
 * could not be when their run came to rest, and large ones compressed.
 */

import { type Clock, isoInstant } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { MapperVersions } from "#mapping/contract.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Spool } from "../spool/spool.ts";
import { IN_PROGRESS_STATES } from "../states.ts";
import type { LookupStore } from "./lookups.ts";
import { retireAtRest } from "./recovery.ts";
import type { Scheduler } from "./scheduler.ts";

export interface HousekeepingParts {
  readonly ledger: Ledger;
  readonly spool: Pick<Spool, "prune" | "retire" | "left" | "pack">;
  readonly scheduler: Pick<Scheduler, "isRunning">;
  readonly lookups: Pick<LookupStore, "prune">;
  readonly versions: Pick<MapperVersions, "prune">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds for which the ledger remembers files that are no longer at their drop. */
  readonly keepMs: number;
}

/** Unused lookup tables and mappers are kept this long: the recorded time of their last use may be as old. */
const MARGIN_MS = 7 * 24 * 3_600_000;

const EVERY_MS = 24 * 3_600_000;
export const PUT_AWAY_EVERY_MS = 60_000;
/** Files forgotten in one transaction, so that others get their turn. */
const PRUNED_AT_ONCE = 100;

/** Begins at once, and repeats every day. Returns a function that stops it. */
export function startHousekeeping(parts: HousekeepingParts): () => Promise<void> {
  const stopping = new AbortController();
  const repeat = async (work: () => Promise<unknown>, everyMs: number, fault: string) => {
    while (!stopping.signal.aborted) {
      await work().catch((thrown: unknown) => parts.log.warn({ reason: wordsOf(thrown) }, fault));
      await parts.clock.sleep(everyMs, stopping.signal);
    }
  };
  const running = Promise.all([
    repeat(() => tidyUp(parts, stopping.signal), EVERY_MS, "old entries could not be forgotten; tried again tomorrow"),
    repeat(
      () => putAway(parts),
      PUT_AWAY_EVERY_MS,
      "files of runs at rest still cannot be put away; tried again in a minute",
    ),
    repeat(
      () => parts.spool.pack(stopping.signal),
      PUT_AWAY_EVERY_MS,
      "kept files cannot be compressed; tried again in a minute",
    ),
  ]);
  return async () => {
    stopping.abort();
    await running;
  };
}

/**
 * A full disk, for one, keeps nothing for replay, and so the files stay where they count against the budget.
 */
async function putAway(parts: HousekeepingParts): Promise<void> {
  const { left } = parts.spool;
  if (left.size === 0) return;
  const { retired, fault } = await retireAtRest(parts, [...left], (id) => parts.scheduler.isRunning(id));
  if (retired > 0) parts.log.info({ runs: retired }, "files of runs at rest were put away after all");
  if (fault !== null) throw fault.thrown;
}

/** Returns how many files the ledger forgot. */
async function tidyUp(parts: HousekeepingParts, signal: AbortSignal): Promise<number> {
  const now = parts.clock.now();
  const goneBefore = isoInstant(now.subtract({ milliseconds: parts.keepMs }));
  let forgotten = 0;
  for (let more = true; more && !signal.aborted; ) {
    const count = await parts.ledger.prune(goneBefore, PRUNED_AT_ONCE);
    forgotten += count;
    more = count === PRUNED_AT_ONCE;
  }
  if (forgotten > 0) parts.log.info({ files: forgotten, goneBefore }, "the ledger forgot old files");
  if (!signal.aborted) await parts.spool.prune(now.epochMilliseconds);
  if (signal.aborted) return forgotten;
  const since = await boundSince(parts, now.epochMilliseconds);
  await parts.lookups.prune(since);
  await parts.versions.prune(since);
  await parts.ledger.shared?.content.prune(since);
  return forgotten;
}

/**
 * No run in progress is bound to a lookup table or a version of a mapper that was last bound before this
 * time.
 */
async function boundSince({ ledger }: HousekeepingParts, nowMs: number): Promise<number> {
  const [oldest] = await ledger.runsIn(IN_PROGRESS_STATES, { limit: 1 });
  const since = oldest === undefined ? nowMs : Math.min(nowMs, Date.parse(oldest.createdAt));
  return since - MARGIN_MS;
}
