/**
 * How long an accepted run has waited for its outcome: the time in which its service could be asked, and the time in
 * which it could not, apart. `confirm.within` is compared with either. Both are kept with the run, so that counting
 * continues after a restart; time in which no gateway runs counts as neither.
 */

import { isoInstant } from "#core/clock.ts";
import type { ConfirmClock, Run } from "../../model.ts";
import type { RunSteps } from "./steps.ts";

/**
 * A clock that is written at each check would cost a commit each; a crash may lose less than this share of
 * `confirm.within`.
 */
const WRITTEN_SHARE = 1 / 20;

/** `acceptedMs`: when the last of its batches was accepted, in milliseconds since 1970. */
export function confirmClock(run: Run, acceptedMs: number, { reach, clock }: RunSteps): ConfirmClock {
  const now = clock.now();
  const known = run.confirmClock ?? { askableMs: 0, awayMs: 0 };
  const fromMs = run.confirmClock === null ? acceptedMs : Date.parse(run.confirmClock.until);
  const { totalMs, awayMs } = reach.seen(run.binding.service, fromMs, now.epochMilliseconds);
  return {
    askableMs: known.askableMs + totalMs - awayMs,
    awayMs: known.awayMs + awayMs,
    until: isoInstant(now),
  };
}

/** Written once enough has passed. */
export async function keepClock(
  run: Run,
  now: ConfirmClock,
  withinMs: number,
  { ledger }: Pick<RunSteps, "ledger">,
): Promise<void> {
  const passed = ({ askableMs, awayMs }: ConfirmClock) => askableMs + awayMs;
  const before = run.confirmClock === null ? 0 : passed(run.confirmClock);
  if (passed(now) - before >= withinMs * WRITTEN_SHARE) await ledger.noteConfirmClock(run.id, now);
}
