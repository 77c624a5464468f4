/** At start-up: brings runs that the last process left in the middle of a step back to where the step can be done again. */
import type { RunSteps } from "./steps.ts";

export interface Recovery {
  /** Runs found on their way, by state, as they were. */
  readonly underWay: Readonly<Record<string, number>>;
  readonly retired: number;
}

export async function recoverRuns(steps: RunSteps): Promise<Recovery> {
  return { underWay: await takeUpRuns(steps, () => false), retired: await retireForgotten(steps) };
}

/** Of the runs that this node may work on; also when another node has ended. Answers what was found, by state. */
export async function takeUpRuns(
  steps: Pick<RunSteps, "ledger">,
  isInHand: (runId: string) => boolean,
): Promise<Readonly<Record<string, number>>> {
  const underWay: Record<string, number> = {};
  const states = ["claimed", "fetched", "mapping", "mapped", "delivering", "accepted"] as const;
  for (const run of await steps.ledger.runsIn(states, { ours: true })) {
    if (isInHand(run.id)) continue;
    underWay[run.state] = (underWay[run.state] ?? 0) + 1;
    if (run.state === "mapping" && (await steps.ledger.fleet.holdRun(run))?.state === "mapping") {
      await steps.ledger.advanceRun(run.id, "mapping", "fetched", {
        detail: "the last process ended while mapping; it is done again",
      });
    }
  }
  return underWay;
}

/** Inputs and segments of runs at rest whose files the last process had no time to put away. */
async function retireForgotten(steps: RunSteps): Promise<number> {
  let retired = 0;
  await steps.spool.sweep();
  const awaited = new Set(
    (await steps.ledger.runsIn(["accepted"], { unsettled: true })).map((run) => run.id),
  );
  for (const id of await steps.spool.residents()) {
    const run = await steps.ledger.run(id);
    const atRest =
      run === null ||
      ["confirmed", "empty", "opened", "discarded", "quarantined", "cancelled"].includes(run.state) ||
      (run.state === "accepted" && !awaited.has(id));
    if (!atRest || (run !== null && run.finishedAt === null)) continue;
    await steps.spool.retire(id);
    retired += 1;
  }
  await steps.spool.prune(steps.clock.now().epochMilliseconds);
  return retired;
}
