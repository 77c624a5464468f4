/** Decides about a file that could not be fetched. */

import { RejectedError, TransientError } from "#core/errors.ts";
import type { FileEntry, Run } from "../../model.ts";
import { containerOf } from "../source.ts";
import { entryOf, NEXT, REST, type RunSteps, reasonOf, type StepResult } from "./steps.ts";

/** A file that is listed and then missing so often in a row is not offered again, as the ledger would grow. */
const MISSING_MAX = 5;

/**
 * Ends a run whose fetch threw because its file vanished or was replaced, which is no longer this arrival. Throws when
 * the fetch is to be repeated.
 */
export async function afterFailedFetch(
  run: Run,
  thrown: unknown,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<StepResult> {
  if (signal.aborted || !(thrown instanceof TransientError || thrown instanceof RejectedError)) throw thrown;
  const drop = steps.dropEntry(run.drop)?.drop;
  if (drop === undefined || (await containerOf(run, steps)) !== null) throw thrown;
  const entry = entryOf(run);
  const there = await drop.stat(entry.path, signal);
  if (there !== null && there.size === entry.size && there.mtime === entry.mtime) throw passing(run, thrown);
  // The fetched bytes may be of two versions.
  await steps.spool.discard(run.id, "input");
  return await leaveDrop(run, there, thrown, steps);
}

/** The file was missing when it was fetched, and is there by now. */
function passing(run: Run, thrown: TransientError | RejectedError): TransientError | RejectedError {
  if (thrown.code !== "HG-DROP-006") return thrown;
  const message = `${run.path} was missing at drop ${run.drop} for a moment`;
  return new TransientError("HG-DROP-006", {
    ...{ operation: "fetch file", subject: `${run.drop}: ${run.path}`, message, cause: thrown },
    hint: "It is fetched again in a moment.",
  });
}

/** The arrival has gone, so that a listing with the file offers it again; `there`: the file that is at its path now. */
async function leaveDrop(
  run: Run,
  there: FileEntry | null,
  thrown: TransientError | RejectedError,
  steps: RunSteps,
): Promise<StepResult> {
  const times = there === null ? await timesMissing(run, steps) : 0;
  if (times >= MISSING_MAX) {
    const message = `the drop lists the file, but it was missing each of the ${times + 1} times that a run fetched it`;
    const reason = { ...reasonOf(thrown), code: "HG-RUN-017", message, hint: undefined };
    await steps.ledger.advanceRun(run.id, run.state, "quarantined", { reason, detail: message });
    return NEXT;
  }
  const message =
    there === null
      ? "the file vanished from the drop before it was fetched; it is taken when it is listed again"
      : `the file was replaced at the drop before it was fetched (${there.size} bytes now); what is listed next is ` +
        "an arrival of its own";
  const reason = { ...reasonOf(thrown), code: "HG-RUN-002", message };
  await steps.ledger.advanceRun(run.id, run.state, "cancelled", { reason, detail: message, gone: true });
  if (there !== null) steps.log.warn({ run: run.id, drop: run.drop }, `${run.path} at ${run.drop}: ${message}`);
  return REST;
}

/** How often in a row, until now, this version of the file was listed and then missing. */
async function timesMissing(run: Run, { ledger }: RunSteps): Promise<number> {
  const arrivals = (await ledger.arrivalsAt(run.path, run.drop)).filter(({ id }) => id < run.arrivalId);
  let times = 0;
  for (const { id, size, mtime } of arrivals.toReversed()) {
    if (times >= MISSING_MAX || size !== run.size || mtime !== run.mtime) break;
    const earlier = await ledger.runOf(id);
    if (earlier?.reason?.code !== "HG-RUN-002") break;
    times += 1;
  }
  return times;
}
