/** The results of a list of runs that take a step: each run has its own, or a reason why it has none. */

import { TransientError } from "#core/errors.ts";
import type { Settled } from "#core/promises.ts";
import type { Run } from "../../model.ts";
import type { RunSteps, StepResult } from "./steps.ts";

export class ListResults {
  readonly #results = new Map<string, Settled<StepResult>>();

  /** Null, for a run that does not continue. */
  end({ id }: Run, value: StepResult): null {
    this.#results.set(id, { status: "fulfilled", value });
    return null;
  }

  get({ id }: Run): Settled<StepResult> | undefined {
    return this.#results.get(id);
  }

  /** Returns the values of the items that continue. A null ends an item; a throw is its reason. */
  async each<Item, Value>(
    items: readonly Item[],
    runOf: (item: Item) => Run,
    work: (item: Item, at: number) => Promise<Value | null>,
  ): Promise<Value[]> {
    const settled = await Promise.allSettled(items.map(async (item, at) => work(item, at)));
    return settled.flatMap((one, at) => {
      const item = items[at];
      if (one.status === "fulfilled") return one.value === null ? [] : [one.value];
      if (item !== undefined) this.#results.set(runOf(item).id, one);
      return [];
    });
  }

  /** In the given order. */
  of(runs: readonly Run[], signal: AbortSignal): readonly Settled<StepResult>[] {
    return runs.map((run) => this.get(run) ?? { status: "rejected", reason: cutShort(run, signal) });
  }
}

/** A list of runs that takes a step. */
export interface ListWork {
  readonly results: ListResults;
  readonly steps: RunSteps;
  readonly signal: AbortSignal;
}

/** Does the work of a list, and returns the result of each run, in their order. */
export async function resultsOf(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
  work: (list: ListWork) => Promise<void>,
): Promise<readonly Settled<StepResult>[]> {
  const results = new ListResults();
  await work({ results, steps, signal });
  return results.of(runs, signal);
}

/** A step that was stopped is taken again. */
function cutShort({ path }: Run, { reason }: AbortSignal): TransientError {
  return new TransientError("HG-MAP-013", { operation: "take step", subject: path, cause: reason });
}
