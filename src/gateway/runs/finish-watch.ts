/** The watch over one finished file: its times, and its events. */

import { type Clock, isoInstant } from "#core/clock.ts";
import type { FinishedFile, NewFinishedFile } from "../ledger/ledger.ts";
import type { IsoInstant } from "../model.ts";

/** Milliseconds until the first check of a file. */
const FIRST_CHECK_MS = 10_000;
/** Milliseconds until the next check of a file that waits for something other than its time. */
export const RECHECK_MS = 60_000;

/** The first watch over a file that was set aside. */
export function beginWatch(
  { place, identity, plan }: Pick<NewFinishedFile, "place" | "identity" | "plan">,
  guardMs: number,
  clock: Clock,
): NewFinishedFile {
  const now = clock.now();
  const after = (ms: number) => isoInstant(now.add({ milliseconds: ms }));
  return { place, identity, plan, endsAt: after(guardMs), checkAt: after(Math.min(FIRST_CHECK_MS, guardMs)) };
}

/**
 * When as much time has passed again as since the finish of the file, and at the latest when its watch ends.
 */
export function nextCheck({ begunAt, endsAt }: FinishedFile, clock: Clock): IsoInstant {
  const nowMs = clock.now().epochMilliseconds;
  const agedMs = Math.max(FIRST_CHECK_MS, nowMs - Date.parse(begunAt));
  const leftMs = Date.parse(endsAt) - nowMs;
  return afterMs(leftMs > 0 ? Math.min(agedMs, leftMs) : RECHECK_MS, clock);
}

export function afterMs(ms: number, clock: Clock): IsoInstant {
  return isoInstant(clock.now().add({ milliseconds: ms }));
}

/** The event of a file that was set aside, the first half of its finish. */
export function asideEvent(
  path: string,
  { place, plan }: Pick<NewFinishedFile, "place" | "plan">,
  endsAt: IsoInstant,
): { readonly what: string; readonly detail: string } {
  if (plan.action === "leave") return { what: "source.archived", detail: `${path} → ${place}` };
  const then = plan.action === "delete" ? "deleted" : `copied to ${plan.to}`;
  return { what: "source.aside", detail: `${path} → ${place}; ${then} after ${endsAt}, unless it changes` };
}
