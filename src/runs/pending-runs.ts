/** Runs on their way, as the ledger has them: not at rest, or at rest with something still to do for them. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import { AT_REST_STATES, CLOSING_STATES, OPEN_STATES } from "../states.ts";

/** Of all nodes, but for unconfirmed runs of others, which those ask about. `limit`: of each kind. `isAsked`: of an unconfirmed run the service was asked since this start, or cannot be asked. */
export async function pendingRuns(
  ledger: Pick<Ledger, "runsIn">,
  limit: number,
  isAsked: (run: Run) => boolean,
): Promise<readonly Run[]> {
  // Also those of other nodes: who waits until nothing is left must not end before them.
  const some = { limit };
  const underWay = await ledger.runsIn(OPEN_STATES, some);
  const accepted = await ledger.runsIn(CLOSING_STATES, { ...some, unsettled: true });
  const unconfirmed = await ledger.runsIn(["unconfirmed"], { ...some, ours: true, unsettled: true });
  const unfinished = await ledger.runsIn(AT_REST_STATES, { ...some, unfinished: true });
  return [...underWay, ...accepted, ...unconfirmed.filter((run) => !isAsked(run)), ...unfinished];
}
