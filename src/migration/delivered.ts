/** The runs of a migration that the service took something of, in the order in which they delivered. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run, RunState } from "../model.ts";

const TAKEN: readonly RunState[] = ["delivering", "accepted", "confirmed", "discarded", "quarantined"];
const READ_AT_ONCE = 200;

export async function* deliveredRuns(ledger: Pick<Ledger, "runsIn">): AsyncGenerator<Run> {
  for (let after: string | undefined; ; ) {
    const runs = await ledger.runsIn(TAKEN, {
      limit: READ_AT_ONCE,
      ...(after === undefined ? {} : { after }),
    });
    yield* runs.filter(({ points }) => points.accepted > 0);
    const last = runs.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}
