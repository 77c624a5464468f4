/**
 * `claimed → fetched → mapping → mapped`, or aside, for a list of runs. Several runs of small files of one drop and one
 * version of a mapper have one segment, which begins with their inputs; the states of all of them are recorded in one
 * transaction. A run alone is fetched to a file of its own, and mapped by the next step.
 */

import type { Settled } from "#core/settled.ts";
import { isDone } from "#core/threads/disk-work.ts";
import { discardPart } from "#mapping/segment/publish.ts";
import type { Run } from "../../model.ts";
import { tracedList } from "../spans.ts";
import { fetchInputs } from "./fetch-step.ts";
import { resultsOf } from "./list-results.ts";
import { mapFetched, mapRuns } from "./map-step.ts";
import type { RunSteps, StepResult } from "./steps.ts";

export async function takeIn(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  const [first] = runs;
  const segment = first === undefined || runs.length === 1 ? null : steps.spool.newSegment(first.id);
  try {
    return await resultsOf(runs, steps, signal, async (step) => {
      const fetched = await tracedList("fetch", runs, step, () => fetchInputs(runs, segment, step));
      const taken = fetched.map(({ run }) => run);
      if (!signal.aborted) await tracedList("map", taken, step, () => mapFetched(fetched, step));
    });
  } finally {
    // A file that cannot be removed now is swept when the gateway starts.
    if (segment !== null) isDone(() => discardPart(segment));
  }
}

/** Maps runs that were fetched to files of their own. */
export function mapOwn(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  return resultsOf(runs, steps, signal, (step) => tracedList("map", runs, step, () => mapRuns(runs, step)));
}
