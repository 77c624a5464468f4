/** Takes the steps of runs, and decides about those that fail: a fault of one run does not affect the others. */

import { isLeaseLost, wordsOf } from "#core/errors.ts";
import { onlyOne, resultOf, type Settled } from "#core/settled.ts";
import type { Run } from "../model.ts";
import { InterruptedMappings } from "./interrupted-mappings.ts";
import type { Stage } from "./stages.ts";
import { takeSteps } from "./steps/step-dispatch.ts";
import { Faults } from "./steps/step-faults.ts";
import { REST, type RunSteps, type StepResult, waitFor } from "./steps/steps.ts";
import { FAULT_WAIT_MS } from "./waits.ts";

/** The result of a run whose list took the step, or null. */
export type ListedResult = Promise<Settled<StepResult> | null>;

export class StepRunner {
  readonly #steps: RunSteps;
  readonly #faults: Faults;
  readonly interrupted: InterruptedMappings;

  constructor(steps: RunSteps) {
    this.#steps = steps;
    this.#faults = new Faults(steps);
    this.interrupted = new InterruptedMappings(steps.ledger);
  }

  /** See `Faults.isStuck`. */
  isStuck(runId: string): boolean {
    return this.#faults.isStuck(runId);
  }

  /**
   * Takes the next step of a list of runs. Does not reject. Null for a run that did not end its step because the list
   * was stopped, as it is when one of its runs is: each of the others takes the step again, by itself.
   */
  async start(
    runs: readonly Run[],
    stage: Stage,
    signal: AbortSignal,
  ): Promise<readonly (Settled<StepResult> | null)[]> {
    const results = await takeSteps(runs, stage, this.#steps, signal);
    for (const [at, run] of runs.entries()) if (results[at]?.status === "rejected") this.#noteFault(run);
    const failed = results.filter(({ status }) => status === "rejected").length;
    if (runs.length > 1)
      this.#steps.log.debug({ runs: runs.length, results: runs.length - failed }, "runs took a step as a list");
    return signal.aborted ? results.map((one) => (one.status === "rejected" ? null : one)) : results;
  }

  /** The result of a run, which takes the step now unless its list did. Does not reject. */
  async result(run: Run, stage: Stage, signal: AbortSignal, listed: Settled<StepResult> | null): Promise<StepResult> {
    try {
      const result = listed === null ? await onlyOne(takeSteps([run], stage, this.#steps, signal)) : resultOf(listed);
      this.#faults.forget(run.id);
      return result;
    } catch (thrown) {
      this.#noteFault(run);
      return signal.aborted ? REST : await this.#afterFault(run, thrown);
    }
  }

  #noteFault({ id, state }: Run): void {
    if (state === "fetched") this.interrupted.note(id);
  }

  async #afterFault(run: Run, thrown: unknown): Promise<StepResult> {
    const { log } = this.#steps;
    if (isLeaseLost(thrown)) {
      log.info({ run: run.id, file: run.path }, `the step is dropped: ${wordsOf(thrown)}`);
      return REST;
    }
    try {
      return await this.#faults.after(run, thrown);
    } catch (second) {
      log.error({ run: run.id, err: second }, `a fault could not be recorded: ${wordsOf(second)}`);
      return waitFor(FAULT_WAIT_MS.last, wordsOf(second));
    }
  }
}
