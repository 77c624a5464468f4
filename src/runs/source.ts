/** Where the bytes of an arrival come from: its drop, or the container that it came in. */
import type { FetchedFile, FileEntry, Run } from "../model.ts";
import { RejectedError, TransientError, wordsOf } from "../support/errors.ts";
import { entryOf, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps.ts";
import { changedContainer } from "./unpacking/refusals.ts";

const DROP_MISSING_WAIT_MS = 60_000;

/** What a step answers that needs the drop, and this node does not know it: another node that does may take the run meanwhile. */
export async function waitForDrop({ id, drop }: Run, { ledger }: RunSteps): Promise<StepResult> {
  const left = (await ledger.fleet.releaseRun(id)) ? "; another node that has it may take the run" : "";
  return waitFor(DROP_MISSING_WAIT_MS, `the drop ${drop} is not in the configuration any more${left}`);
}

/** This node cannot go on with the run, and one that knows its drop can: throws `TransientError`, so that it is looked at again. */
export async function leaveToOthers(run: Run, lost: string, { ledger }: RunSteps): Promise<never> {
  const message = `${lost}, and the drop ${run.drop} is not in the configuration of this node; it waits for the drop, or for a node that has it`;
  const error = new TransientError("HG-RUN-008", { operation: "fetch source", subject: run.drop, message });
  // Before another has it, who would refuse the note. Why a run is held stands until it is not.
  if (run.state !== "held" && run.reason?.message !== wordsOf(error))
    await ledger.noteRun(run.id, { reason: reasonOf(error), event: "run.waiting", detail: wordsOf(error) });
  await ledger.fleet.releaseRun(run.id);
  throw error;
}

/** Into a local file, synced. Throws as `Drop.fetch` does. */
export async function fetchSource(
  run: Run,
  destination: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<FetchedFile> {
  const container = await containerOf(run, steps);
  if (container === null) {
    const post = steps.dropPost(run.drop);
    if (post !== undefined) return post.drop.fetch(whereIsNow(run), destination, signal);
    throw new TransientError("HG-RUN-008", { operation: "fetch source", subject: run.drop });
  }
  const entryPath = run.path.slice(`${container.path}!/`.length);
  const again = (path: string) => fetchAgain(container, path, steps, signal);
  return steps.copies.extract(container, entryPath, destination, { again, signal });
}

/** An archived file keeps its size and time. */
function whereIsNow(run: Run): FileEntry {
  const { finishedAt, finishPlan } = run;
  const archived = finishedAt !== null && finishPlan?.action === "archive";
  return archived ? { ...entryOf(run), path: finishPlan.to } : entryOf(run);
}

/** A container that went from its drop, or was replaced there, cannot be had again however often one tries. */
async function fetchAgain(
  container: Run,
  destination: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<FetchedFile> {
  try {
    return await fetchSource(container, destination, steps, signal);
  } catch (thrown) {
    if (signal.aborted || !(thrown instanceof TransientError || thrown instanceof RejectedError))
      throw thrown;
    const post = steps.dropPost(container.drop);
    if (post === undefined || (await containerOf(container, steps)) !== null) throw thrown;
    const there = await post.drop.stat(container.path, signal);
    if (there !== null && there.size === container.size && there.mtime === container.mtime) throw thrown;
    throw changedContainer(container.path);
  }
}

/** The run that opened the container of which this run's arrival is an entry, or null. */
export async function containerOf(run: Run, steps: RunSteps): Promise<Run | null> {
  // Of an entry the path tells so, though a file at a drop may be called like one.
  if (!run.path.includes("!/")) return null;
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival === null || arrival.parentId === null) return null;
  const container = await steps.ledger.runOf(arrival.parentId);
  if (container === null) throw changedContainer(run.path);
  return container;
}
