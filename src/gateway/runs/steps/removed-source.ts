/** Runs of stored files that were removed meanwhile: their removal may not have reached this gateway. */
import type { Run } from "../../model.ts";
import { NEXT, type RunSteps, type StepResult } from "./steps.ts";

type OneStep = (run: Run, steps: RunSteps, signal: AbortSignal) => Promise<StepResult>;

/** The step, except for a run of a removed file, which is cancelled. What is being sent may end. */
export function unlessRemoved(step: OneStep): OneStep {
  return async (run, steps, signal) => {
    if (run.state === "delivering" || !(await steps.isRemoved(run))) return await step(run, steps, signal);
    const message = "the stored file was removed, and is no longer processed";
    await steps.ledger.advanceRun(run.id, run.state, "cancelled", {
      reason: { code: "HG-RUN-010", message },
      detail: message,
    });
    return NEXT;
  };
}
