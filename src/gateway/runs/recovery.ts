/**
 * At start-up, returns runs that the last process left in the middle of a step to where the step can be taken
 * again.
 */

import { onlyOne } from "#core/promises.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Spool } from "../spool/spool.ts";
import { OPEN_STATES, RUN_STATES, STARTED_STATES } from "../states.ts";
import { mapAgain } from "./interrupted-mappings.ts";
import type { RunSteps } from "./steps/steps.ts";

export interface Recovery {
  /** Unfinished runs that were found, by the state in which they were. */
  readonly resumed: Readonly<Record<string, number>>;
  readonly retired: number;
  /** The recovery in words. */
  readonly recovered: string;
}

const OLDER_HINT =
  "The spool has files of later runs. What comes again is compared with what the service has: see *Restoring a " +
  "ledger* in docs/operations.md.";

export async function recoverRuns(steps: RunSteps): Promise<Recovery> {
  const resumed = await resumeRuns(steps, () => false);
  const lost = await countLost(steps);
  await steps.spool.sweep();
  const residents = await steps.spool.residents();
  const isOlder = await noteOlderCopy(residents, steps);
  const { retired, fault } = await retireAtRest(steps, residents);
  if (fault !== null) throw fault.thrown;
  await steps.spool.prune(steps.clock.now().epochMilliseconds);
  return { resumed, retired, recovered: recoveryWords(resumed, lost, retired, isOlder) };
}

/** Whether the spool has files of a later run than any that the ledger knows. */
async function noteOlderCopy(residents: Iterable<string>, { ledger, spool, log }: RunSteps): Promise<boolean> {
  const runs = [...residents, ...(await spool.keptInputs())];
  const latest = runs.reduce((last, id) => (id > last ? id : last), "");
  if (latest === "" || !(await ledger.noteOlderCopy(latest))) return false;
  log.warn({ run: latest, hint: OLDER_HINT }, "the ledger was lost, or is an older copy");
  return true;
}

/**
 * Counts inputs and segments of runs in progress that are no longer in the spool. Each run reports it when
 * they are made again.
 */
async function countLost({ ledger, spool }: RunSteps): Promise<{ inputs: number; segments: number }> {
  const lost = { inputs: 0, segments: 0 };
  for (const run of await ledger.runsIn(STARTED_STATES, { ours: true })) {
    if (RUN_STATES[run.state].stage === "delivery") lost.segments += (await spool.hasSegment(run.id)) ? 0 : 1;
    else lost.inputs += (await spool.holdsInput(run.id)) ? 0 : 1;
  }
  return lost;
}

function recoveryWords(
  resumed: Recovery["resumed"],
  lost: { readonly inputs: number; readonly segments: number },
  retired: number,
  isOlder: boolean,
): string {
  const states = Object.entries(resumed).map(([state, count]) => `${count} ${state}`);
  const facts = [
    ...(isOlder ? ["the ledger was lost, or is an older copy: the spool has later runs than it knows"] : []),
    ...(states.length === 0 ? [] : [`runs resume where the last process left them: ${states.join(", ")}`]),
    ...(lost.inputs === 0 ? [] : [`the spool lost ${lost.inputs} inputs, which are fetched from their drops again`]),
    ...(lost.segments === 0 ? [] : [`the spool lost ${lost.segments} segments, which are made again with equal bytes`]),
    ...(retired === 0 ? [] : [`the files of ${retired} runs at rest were put away`]),
  ];
  return facts.length === 0 ? "there was nothing to recover" : facts.join("; ");
}

/**
 * Resumes the runs that this node may work on, also after the end of another node. Returns their number by
 * state.
 */
export async function resumeRuns(
  steps: Pick<RunSteps, "ledger">,
  isRunning: (runId: string) => boolean,
): Promise<Readonly<Record<string, number>>> {
  const resumed: Record<string, number> = {};
  const found = [
    ...(await steps.ledger.runsIn(OPEN_STATES, { ours: true })),
    // A run whose outcome is not asked for stays accepted for ever.
    ...(await steps.ledger.runsIn(["accepted"], { ours: true, unsettled: true })),
  ];
  for (const run of found) {
    if (isRunning(run.id)) continue;
    resumed[run.state] = (resumed[run.state] ?? 0) + 1;
    await mapAgain(run, "the last process ended while mapping; it is done again", steps.ledger);
  }
  return resumed;
}

/**
 * Moves inputs and segments of those of these runs that are at rest to the kept files. Returns how many, and
 * the first fault.
 */
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
    const atRest = run === null || (run.state === "accepted" ? !awaited.has(id) : !RUN_STATES[run.state].isInProgress);
    if (!atRest || (run !== null && run.finishedAt === null) || isRunning(id)) continue;
    try {
      await onlyOne(spool.retire([id]));
      retired += 1;
      // The reason was that its files could not be put away.
      if (run?.reason?.code === "HG-SPOOL-004") await ledger.noteRun(id, { reason: null });
    } catch (thrown) {
      fault ??= { thrown };
    }
  }
  return { retired, fault };
}
