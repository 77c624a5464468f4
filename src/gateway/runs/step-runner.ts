/** Takes the steps of runs, and decides about those that fail: a fault of one run does not affect the others. */
import { ConfigError, HeadgateError, InvariantError, isLeaseLost, RejectedError, wordsOf } from "#core/errors.ts";
import { onlyOne, resultOf, type Settled } from "#core/promises.ts";
import type { Run } from "../model.ts";
import { RUN_STATES } from "../states.ts";
import { InterruptedMappings } from "./interrupted-mappings.ts";
import type { Stage } from "./stages.ts";
import { takeSteps } from "./steps/step-dispatch.ts";
import { REST, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps/steps.ts";
import { FAULT_WAIT_MS } from "./waits.ts";

/** The result of a run whose list took the step, or null. */
export type ListedResult = Promise<Settled<StepResult> | null>;

const GIVEN_UP_AFTER = { config: 2, machine: 5 } as const;

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

/**
 * Decides about a run whose step threw: a fault of the run ends in quarantine; one that may pass is retried with
 * growing pauses.
 */
class Faults {
  readonly #steps: Pick<RunSteps, "ledger" | "log">;
  /** How often in a row, of runs that are tried again. */
  readonly #times = new Map<string, number>();
  /** Of these, those that `--until-idle` does not wait for. */
  readonly #stuck = new Set<string>();

  constructor(steps: Pick<RunSteps, "ledger" | "log">) {
    this.#steps = steps;
  }

  /** A step of the run came to its end. */
  forget(runId: string): void {
    this.#times.delete(runId);
    this.#stuck.delete(runId);
  }

  /**
   * The run failed so often in a row, for a reason of this machine or one that a person has to correct, that
   * `--until-idle` does not wait for it. It is retried all the same.
   */
  isStuck(runId: string): boolean {
    return this.#stuck.has(runId);
  }

  /** Records and logs the fault. Rejects when the ledger cannot be written. */
  async after(run: Run, thrown: unknown): Promise<StepResult> {
    const { ledger, log } = this.#steps;
    const error = asError(run, thrown);
    const now = await ledger.run(run.id);
    if (error instanceof InvariantError) log.error({ run: run.id, code: error.code, err: thrown }, wordsOf(error));
    const final = error instanceof RejectedError || error instanceof InvariantError;
    if (final && now !== null && RUN_STATES[now.state].isOpen) {
      await ledger.advanceRun(run.id, now.state, "quarantined", {
        reason: reasonOf(error),
        detail: wordsOf(error),
      });
      return { move: "next" };
    }
    const pauseMs = this.#pauseMs(run, error);
    log.warn({ run: run.id, file: run.path, code: error.code, retryMs: pauseMs }, wordsOf(error));
    if (now !== null && now.reason?.message !== wordsOf(error)) {
      await ledger.noteRun(run.id, {
        // Why a run is held stands until it is not.
        ...(now.state === "held" ? {} : { reason: reasonOf(error) }),
        event: "run.waiting",
        detail: wordsOf(error),
      });
    }
    return waitFor(pauseMs, wordsOf(error));
  }

  #pauseMs(run: Run, error: HeadgateError): number {
    const times = (this.#times.get(run.id) ?? 0) + 1;
    this.#times.set(run.id, times);
    if (times >= givenUpAfter(error)) this.#stuck.add(run.id);
    if (error instanceof ConfigError) return FAULT_WAIT_MS.last;
    return Math.min(FAULT_WAIT_MS.last, FAULT_WAIT_MS.first * 2 ** (times - 1));
  }
}

/** Failures in a row. Drops and services that are away have bounds of their own. */
function givenUpAfter(error: HeadgateError): number {
  if (error instanceof ConfigError) return GIVEN_UP_AFTER.config;
  return /^HG-(MAP|SPOOL)-/.test(error.code) ? GIVEN_UP_AFTER.machine : Number.POSITIVE_INFINITY;
}

function asError(run: Run, thrown: unknown): HeadgateError {
  if (thrown instanceof HeadgateError) return thrown;
  return new InvariantError("HG-BUG-001", {
    operation: "lead run",
    subject: run.id,
    message: wordsOf(thrown),
    cause: thrown,
  });
}
