/** Which step comes next for a run: each is one file. */
import type { Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { onlyOne } from "../../support/settled.ts";
import { tracedStep } from "../spans.ts";
import type { Stage } from "../stages.ts";
import { confirmOutcome } from "./confirm-step.ts";
import { deliverBatches } from "./deliver-step.ts";
import { fetchInput } from "./fetch-step.ts";
import { finishSource } from "./finish-step.ts";
import { recheckHeld } from "./guard-step.ts";
import { mapInput } from "./map-step.ts";
import { openContainer, tendContainer } from "./open-step.ts";
import type { RunSteps, StepResult } from "./steps.ts";

type Step = (run: Run, steps: RunSteps, signal: AbortSignal) => Promise<StepResult>;

export function takeStep(run: Run, stage: Stage, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const take = (name: string, step: Step) => tracedStep(name, run, steps, () => step(run, steps, signal));
  if (run.state === "claimed") return take("fetch", fetchInput);
  if (run.state === "fetched" && run.binding.unpack !== undefined) return take("open", openContainer);
  if (run.state === "fetched") return take("map", mapInput);
  if (run.state === "opened") return tendContainer(run, steps, signal);
  if (stage.name === "delivery") return take("deliver", deliverBatches);
  if (run.state === "held") return recheckHeld(run, steps, signal);
  if (!RUN_STATES[run.state].isAwaited) return take("finish", finishSource);
  return close(run, steps, take);
}

/** An accepted or unconfirmed run: its source is finished first (unless its rule waits for the confirmation), then its outcome is awaited. */
async function close(
  run: Run,
  steps: RunSteps,
  take: (name: string, step: Step) => Promise<StepResult>,
): Promise<StepResult> {
  if (run.finishedAt === null) await take("finish", finishSource);
  const result = await take("confirm", confirmOutcome);
  if (result.move === "rest") await onlyOne(steps.spool.retire([run.id]));
  return result;
}
