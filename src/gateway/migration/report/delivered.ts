/**
 * The runs of a migration, in the order in which they were opened, which is that of their delivery. They are read in
 * pages.
 */
import type { Ledger } from "../../ledger/ledger.ts";
import type { Run, RunState } from "../../model.ts";
import { TOUCHED_STATES } from "../../states.ts";

const READ_AT_ONCE = 200;

export async function* allRuns(ledger: Pick<Ledger, "runsIn">, states: readonly RunState[]): AsyncGenerator<Run> {
  for (let after: string | undefined; ; ) {
    const runs = await ledger.runsIn(states, {
      limit: READ_AT_ONCE,
      ...(after === undefined ? {} : { after }),
    });
    yield* runs;
    after = runs.at(-1)?.id;
    if (after === undefined) return;
  }
}

/** Runs of which the service accepted something. */
export async function* deliveredRuns(ledger: Pick<Ledger, "runsIn">): AsyncGenerator<Run> {
  for await (const run of allRuns(ledger, TOUCHED_STATES)) if (run.points.accepted > 0) yield run;
}
