/** Reads from the ledger the runs that are not at rest, or have something left to do. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import { AT_REST_STATES, CLOSING_STATES, OPEN_STATES } from "../states.ts";

/**
 * Returns the runs of all nodes, without unconfirmed runs of other nodes, which ask about them themselves.
 *
 * @param limit At most so many runs of each kind.
 * @param isAsked Whether the service was asked about an unconfirmed run since this start, or cannot be asked.
 */
export async function pendingRuns(
  ledger: Pick<Ledger, "runsIn">,
  limit: number,
  isAsked: (run: Run) => boolean,
): Promise<readonly Run[]> {
  // Also those of other nodes: a command that waits until nothing is left must not end before them.
  const some = { limit };
  const open = await ledger.runsIn(OPEN_STATES, some);
  const accepted = await ledger.runsIn(CLOSING_STATES, { ...some, unsettled: true });
  const unconfirmed = await ledger.runsIn(["unconfirmed"], { ...some, ours: true, unsettled: true });
  const unfinished = await ledger.runsIn(AT_REST_STATES, { ...some, unfinished: true });
  return [...open, ...accepted, ...unconfirmed.filter((run) => !isAsked(run)), ...unfinished];
}
