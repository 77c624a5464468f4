/** Where the bytes of an arrival come from: its drop, or the container that it came in. */

import { RejectedError, TransientError, wordsOf } from "#core/errors.ts";
import { fetchFile } from "../drops/drop.ts";
import { type FetchedFile, type FileEntry, finishedPlace, type Run } from "../model.ts";
import { entryOf, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps/steps.ts";
import { changedContainer } from "./unpacking/container.ts";

const DROP_MISSING_WAIT_MS = 60_000;

/**
 * The result of a step whose drop is not in the configuration of this node. Another node that has the drop
 * may take the run.
 */
export async function waitForDrop({ id, drop }: Run, { ledger }: RunSteps): Promise<StepResult> {
  const left = (await ledger.fleet.releaseRun(id)) ? "; another node that has it may take the run" : "";
  return waitFor(DROP_MISSING_WAIT_MS, `the drop ${drop} is no longer in the configuration${left}`);
}

/**
 * Releases a run that this node cannot continue to a node that has its drop. Throws `TransientError`, so that
 * the run is tried again.
 */
export async function leaveToOthers(run: Run, lost: string, { ledger }: RunSteps): Promise<never> {
  const message =
    `${lost}, and the drop ${run.drop} is not in the configuration of this node; ` +
    "it waits for the drop, or for a node that has it";
  const error = new TransientError("HG-RUN-008", { operation: "fetch source", subject: run.drop, message });
  // Before the release, since another node that has the run would refuse the note. A held run keeps its
  // reason.
  if (run.state !== "held" && run.reason?.message !== wordsOf(error))
    await ledger.noteRun(run.id, { reason: reasonOf(error), event: "run.waiting", detail: wordsOf(error) });
  await ledger.fleet.releaseRun(run.id);
  throw error;
}

/** Fetches the source into a local file, synced. Throws as `Drop.fetch` does. */
export async function fetchSource(
  run: Run,
  destination: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<FetchedFile> {
  const container = await containerOf(run, steps);
  if (container === null) {
    const entry = steps.dropEntry(run.drop);
    if (entry !== undefined) return fetchFile(entry.drop, await currentEntry(run, steps), destination, signal);
    throw new TransientError("HG-RUN-008", { operation: "fetch source", subject: run.drop });
  }
  const entryPath = run.path.slice(`${container.path}!/`.length);
  const again = (path: string) => fetchAgain(container, path, steps, signal);
  return steps.copies.extract(container, entryPath, destination, { again, signal });
}

/**
 * Where the file is now: a run that was finished before, or the one that it replays, may have moved it. An archived
 * file keeps its size and time, and so does one that was set aside.
 */
export async function currentEntry(run: Run, { ledger }: RunSteps): Promise<FileEntry> {
  const entry = entryOf(run);
  if (run.finishedAt === null && run.replay === null) return entry;
  return { ...entry, path: finishedPlace(run.path, await ledger.events(run.arrivalId)) ?? run.path };
}

/** A container that left its drop, or was replaced there, can never be fetched again. */
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
 * Returns why the bytes of a run can never be fetched again, after a fetch that threw; null when another
 * attempt may succeed. A missing file is lost only when the listings of its drop say so: a remount or a
 * failover hides it for a moment, which throws `TransientError`.
 */
export async function whyLost(run: Run, thrown: unknown, steps: RunSteps, signal: AbortSignal): Promise<string | null> {
  if (signal.aborted || !(thrown instanceof TransientError || thrown instanceof RejectedError)) return null;
  const dropEntry = steps.dropEntry(run.drop);
  if (dropEntry === undefined || (await containerOf(run, steps)) !== null) return null;
  const entry = await currentEntry(run, steps);
  const there = await dropEntry.drop.stat(entry.path, signal);
  if (there !== null && there.size === entry.size && there.mtime === entry.mtime) return null;
  if (there !== null)
    return (
      `${entry.path} was replaced at the drop (${there.size} bytes now); ` +
      "the newer version is an arrival of its own"
    );
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival === null || arrival.goneAt !== null) return `${entry.path} is no longer at the drop`;
  throw new TransientError("HG-DROP-006", {
    operation: "fetch file",
    subject: `${run.drop}: ${entry.path}`,
    message: `${entry.path} is no longer at drop ${run.drop}; the next listings show whether it comes back`,
    cause: thrown,
  });
}

/** The run that opened the container of which this run's arrival is an entry, or null. */
export async function containerOf(run: Run, steps: RunSteps): Promise<Run | null> {
  // The path of an entry contains `!/`, but the name of a file at a drop may too.
  if (!run.path.includes("!/")) return null;
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival === null || arrival.parentId === null) return null;
  const container = await steps.ledger.runOf(arrival.parentId);
  if (container === null) throw changedContainer(run.path);
  return container;
}
