/** At start-up: brings runs that the last process left in the middle of a step back to where the step can be done again. */

import type { Ledger } from "../ledger/ledger.ts";
import type { Spool } from "../spool/spool.ts";
import { OPEN_STATES, RUN_STATES, STARTED_STATES } from "../states.ts";
import { onlyOne } from "../support/settled.ts";
import type { RunSteps } from "./steps/steps.ts";

export interface Recovery {
  /** Runs found on their way, by state, as they were. */
  readonly underWay: Readonly<Record<string, number>>;
  readonly retired: number;
  /** What was done about it, in words. */
  readonly recovered: string;
}

export async function recoverRuns(steps: RunSteps): Promise<Recovery> {
  const underWay = await takeUpRuns(steps, () => false);
  const lost = await countLost(steps);
  await steps.spool.sweep();
  const { retired, fault } = await retireAtRest(steps, await steps.spool.residents());
  if (fault !== null) throw fault.thrown;
  await steps.spool.prune(steps.clock.now().epochMilliseconds);
  return { underWay, retired, recovered: recoveryWords(underWay, lost, retired) };
}

/** Of what the runs under way need, how much the spool does not have any more. Each is told by its run when it is made again. */
async function countLost({ ledger, spool }: RunSteps): Promise<{ inputs: number; segments: number }> {
  const lost = { inputs: 0, segments: 0 };
  for (const run of await ledger.runsIn(STARTED_STATES, { ours: true })) {
    if (RUN_STATES[run.state].stage === "delivery") lost.segments += (await spool.hasSegment(run.id)) ? 0 : 1;
    else lost.inputs += (await spool.holdsInput(run.id)) ? 0 : 1;
  }
  return lost;
}

function recoveryWords(
  underWay: Recovery["underWay"],
  lost: { readonly inputs: number; readonly segments: number },
  retired: number,
): string {
  const states = Object.entries(underWay).map(([state, count]) => `${count} ${state}`);
  const facts = [
    ...(states.length === 0 ? [] : [`runs go on where the last process left them: ${states.join(", ")}`]),
    ...(lost.inputs === 0
      ? []
      : [`the spool lost ${lost.inputs} inputs, which are fetched from their drops again`]),
    ...(lost.segments === 0
      ? []
      : [`the spool lost ${lost.segments} segments, which are made again with equal bytes`]),
    ...(retired === 0 ? [] : [`the files of ${retired} runs at rest were put away`]),
  ];
  return facts.length === 0 ? "there was nothing to recover" : facts.join("; ");
}

/** Of the runs that this node may work on; also when another node has ended. Answers what was found, by state. */
export async function takeUpRuns(
  steps: Pick<RunSteps, "ledger">,
  isRunning: (runId: string) => boolean,
): Promise<Readonly<Record<string, number>>> {
  const underWay: Record<string, number> = {};
  const found = [
    ...(await steps.ledger.runsIn(OPEN_STATES, { ours: true })),
    // Those of which nothing more is told stay accepted for ever.
    ...(await steps.ledger.runsIn(["accepted"], { ours: true, unsettled: true })),
  ];
  for (const run of found) {
    if (isRunning(run.id)) continue;
    underWay[run.state] = (underWay[run.state] ?? 0) + 1;
    if (run.state === "mapping" && (await steps.ledger.fleet.holdRun(run))?.state === "mapping") {
      await steps.ledger.advanceRun(run.id, "mapping", "fetched", {
        detail: "the last process ended while mapping; it is done again",
      });
    }
  }
  return underWay;
}

/** Puts away inputs and segments of those of these runs that are at rest, as far as it can. Answers how many, and what stood in the way of the others first. */
export async function retireAtRest(
  { ledger, spool }: { readonly ledger: Ledger; readonly spool: Pick<Spool, "retire"> },
  ids: Iterable<string>,
  isRunning: (runId: string) => boolean = () => false,
): Promise<{ readonly retired: number; readonly fault: { readonly thrown: unknown } | null }> {
  let retired = 0;
  let fault: { readonly thrown: unknown } | null = null;
  const awaited = new Set((await ledger.runsIn(["accepted"], { unsettled: true })).map((run) => run.id));
  for (const id of ids) {
    const run = await ledger.run(id);
    const atRest =
      run === null || (run.state === "accepted" ? !awaited.has(id) : !RUN_STATES[run.state].isInProgress);
    if (!atRest || (run !== null && run.finishedAt === null) || isRunning(id)) continue;
    try {
      await onlyOne(spool.retire([id]));
      retired += 1;
      // It is no longer so.
      if (run?.reason?.code === "HG-SPOOL-004") await ledger.noteRun(id, { reason: null });
    } catch (thrown) {
      fault ??= { thrown };
    }
  }
  return { retired, fault };
}
