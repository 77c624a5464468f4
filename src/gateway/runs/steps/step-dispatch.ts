/**
 * The step that comes next for runs: each takes a list and returns a result or a reason for each run. A step that gains
 * nothing by a list takes its runs one by one.
 */

import { onlyOne, resultOf, type Settled, settleEach } from "#core/settled.ts";
import type { Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { tracedStep } from "../spans.ts";
import type { Stage } from "../stages.ts";
import { applyMasterData } from "./apply-step.ts";
import { confirmOutcome } from "./confirm-step.ts";
import { deliverBatches } from "./deliver-step.ts";
import { finishSources } from "./finish-step.ts";
import { recheckHeld } from "./guard-step.ts";
import { mapOwn, takeIn } from "./intake-step.ts";
import { openContainer, tendContainer } from "./open-step.ts";
import { unlessRemoved } from "./removed-source.ts";
import { NEXT, REST, type RunSteps, type StepResult } from "./steps.ts";

type OneStep = (run: Run, steps: RunSteps, signal: AbortSignal) => Promise<StepResult>;
type ListStep = (runs: readonly Run[], steps: RunSteps, signal: AbortSignal) => Promise<readonly Settled<StepResult>[]>;

/** In the given order. Does not reject. After `signal` no further work begins. */
export async function takeSteps(
  runs: readonly Run[],
  stage: Stage,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  const leased = await settleEach(runs, (run) => steps.ledger.fleet.holdRun(run));
  const taken = new Map<string, Settled<StepResult>>();
  const due = leased.flatMap((one, at) => {
    const [run, now] = [runs[at], one.status === "fulfilled" ? one.value : null];
    if (one.status === "rejected") taken.set(run?.id ?? "", one);
    // Another node was faster, or the run has moved on since it was read.
    else if (now?.state !== run?.state)
      taken.set(run?.id ?? "", { status: "fulfilled", value: now === null ? REST : NEXT });
    return now === null || taken.has(now.id) ? [] : [now];
  });
  for (const [step, some] of Map.groupBy(due, (run) => stepOf(run, stage))) {
    const [all] = await Promise.allSettled([step(some, steps, signal)]);
    for (const [at, { id }] of some.entries()) {
      const one = all.status === "fulfilled" ? all.value[at] : all;
      if (one !== undefined) taken.set(id, one);
    }
  }
  return runs.map(({ id }) => taken.get(id) ?? { status: "fulfilled", value: NEXT });
}

/** A state without a line of its own counts as at rest: the source of its runs is finished. */
function stepOf(run: Run, stage: Stage): ListStep {
  if (run.state === "claimed") return takeIn;
  if (run.state === "fetched") return fetchedStep(run);
  if (run.state === "opened") return TEND;
  if (stage.name === "delivery") return DELIVER;
  if (run.state === "held") return RECHECK;
  if (!RUN_STATES[run.state].isAwaited) return finishSources;
  return run.finishedAt === null ? finishOrConfirm : CONFIRM;
}

function fetchedStep({ binding }: Run): ListStep {
  if (binding.structure === true) return APPLY;
  return binding.unpack === undefined ? mapOwn : OPEN;
}

function oneByOne(name: string | null, step: OneStep): ListStep {
  return (runs, steps, signal) =>
    settleEach(runs, (run) =>
      name === null ? step(run, steps, signal) : tracedStep(name, run, steps, () => step(run, steps, signal)),
    );
}

const OPEN = oneByOne("open", openContainer);
const APPLY = oneByOne("apply", unlessRemoved(applyMasterData));
const TEND = oneByOne(null, tendContainer);
const DELIVER = oneByOne("deliver", unlessRemoved(deliverBatches));
const RECHECK = oneByOne(null, unlessRemoved(recheckHeld));
const CONFIRM = oneByOne(null, confirm);

async function confirm(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const result = await tracedStep("confirm", run, steps, () => confirmOutcome(run, steps, signal));
  if (result.move === "rest") await onlyOne(steps.spool.retire([run.id]));
  return result;
}

/**
 * Accepted or unconfirmed runs: their sources are finished first. Where the rule of the drop waits for the
 * confirmation, or the drop is missing, the outcome is awaited before.
 */
async function finishOrConfirm(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  const finished = await finishSources(runs, steps, signal);
  return await settleEach(runs, async (run, at) => {
    const result = resultOf(finished[at]);
    const isFinished = result.move !== "wait" && result.run !== undefined;
    return isFinished ? result : await confirm(run, steps, signal);
  });
}
