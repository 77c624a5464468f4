/** Where the bytes of an arrival come from: its drop, or the container that it came in. */
import { fetchFile } from "../drops/drop.ts";
import type { FetchedFile, FileEntry, Run } from "../model.ts";
import { RejectedError, TransientError, wordsOf } from "../support/errors.ts";
import { entryOf, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps/steps.ts";
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
    const post = steps.dropEntry(run.drop);
    if (post !== undefined) return fetchFile(post.drop, await whereIsNow(run, steps), destination, signal);
    throw new TransientError("HG-RUN-008", { operation: "fetch source", subject: run.drop });
  }
  const entryPath = run.path.slice(`${container.path}!/`.length);
  const again = (path: string) => fetchAgain(container, path, steps, signal);
  return steps.copies.extract(container, entryPath, destination, { again, signal });
}

/** An archived file keeps its size and time, and so does one that waits aside. */
async function whereIsNow(run: Run, { ledger }: RunSteps): Promise<FileEntry> {
  const { finishedAt, finishPlan } = run;
  const watched = finishedAt === null ? null : await ledger.finishedFiles.of(run.arrivalId);
  if (watched !== null) return { ...entryOf(run), path: watched.place };
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
    const fault = await whyLost(container, thrown, steps, signal);
    throw fault === null ? thrown : changedContainer(container.path);
  }
}

/**
 * Why the bytes of a run can never be fetched again, after a fetch that threw; null when another attempt may succeed. A file that is out of
 * sight is lost only when the listings of its drop say so: a remount or a failover hides it for a moment, which throws `TransientError`.
 */
export async function whyLost(
  run: Run,
  thrown: unknown,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<string | null> {
  if (signal.aborted || !(thrown instanceof TransientError || thrown instanceof RejectedError)) return null;
  const post = steps.dropEntry(run.drop);
  if (post === undefined || (await containerOf(run, steps)) !== null) return null;
  const entry = await whereIsNow(run, steps);
  const there = await post.drop.stat(entry.path, signal);
  if (there !== null && there.size === entry.size && there.mtime === entry.mtime) return null;
  if (there !== null)
    return `${entry.path} was replaced at the drop (${there.size} bytes now); the newer version is an arrival of its own`;
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival === null || arrival.goneAt !== null) return `${entry.path} is no longer at the drop`;
  throw new TransientError("HG-DROP-006", {
    operation: "fetch file",
    subject: `${run.drop}: ${entry.path}`,
    message: `${entry.path} is no longer at drop ${run.drop}; the next listings tell whether it comes back`,
    cause: thrown,
  });
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
