/** `claimed → fetched`: the bytes come into the spool, and their digest tells whether they are a duplicate. */
import type { Arrival, Run } from "../model.ts";
import { RejectedError, TransientError } from "../support/errors.ts";
import { faultPoint } from "../support/faults.ts";
import { fetchReplayed } from "./replaying.ts";
import { containerOf, fetchSource, waitForDrop } from "./source.ts";
import { entryOf, NEXT, REST, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps.ts";

/** Should nobody tell of room before: what others leave on the disk is not heard of. */
const FULL_WAIT_MS = 2_000;

/** While the spool is full the file stays where it is. */
export async function fetchInput(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { room, ledger } = steps;
  const arrival = await ledger.arrival(run.arrivalId);
  const isEntry = (arrival?.parentId ?? null) !== null;
  const isBody = steps.dropPost(run.drop)?.drop.kind === "http";
  const refused = await room.reserve(run.id, run.size, isEntry, isBody);
  if (refused !== null) {
    const { code, words } = refused;
    if (run.reason?.message !== words)
      await ledger.noteRun(run.id, { reason: { code, message: words }, event: "run.waiting", detail: words });
    return waitFor(FULL_WAIT_MS, words);
  }
  let isFetched = false;
  try {
    const result = await fetchIntoSpool(run, arrival, steps, signal);
    isFetched = result.move === "next";
    return result;
  } finally {
    room.fetched(run.id, isFetched ? run.size : null);
  }
}

async function fetchIntoSpool(
  run: Run,
  arrival: Arrival | null,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<StepResult> {
  if (run.replay !== null) return fetchReplayed(run, run.replay, steps, signal);
  if (arrival?.state === "duplicate") {
    await cancel(run, steps, { code: "HG-RUN-001", message: arrival.reason });
    return REST;
  }
  const post = steps.dropPost(run.drop);
  if (post === undefined) return await waitForDrop(run, steps);
  if (run.binding.unpack === undefined) steps.pool.prepare(run.binding.mapper);
  const fetched = await fetchOrTellWhy(run, steps, signal);
  if ("move" in fetched) return fetched;
  faultPoint("run.fetch.stored");
  if (arrival !== null) {
    const earlier =
      post.duplicates === "process" ? null : await steps.ledger.duplicateOf(arrival, fetched.sha256);
    if (earlier !== null && post.duplicates === "flag") {
      await steps.ledger.addEvent({
        arrivalId: arrival.id,
        runId: run.id,
        operationId: null,
        what: "arrival.repeated",
        detail: `the same bytes came before at this path (${earlier.seenAt}); the drop's \`duplicates: flag\` has them processed again`,
      });
    } else if (earlier !== null) {
      const message = `the same bytes came before at this path (${earlier.seenAt}) and were delivered or are under way`;
      await steps.ledger.advanceArrival(arrival.id, "duplicate", message);
      await cancel(run, steps, { code: "HG-RUN-001", message });
      return REST;
    }
  }
  await steps.ledger.advanceRun(run.id, "claimed", "fetched", {
    sha256: fetched.sha256,
    reason: null,
    detail: `${fetched.bytes} bytes, sha256 ${fetched.sha256}`,
  });
  return NEXT;
}

/** A file that vanished or was replaced before its bytes were had is no longer this arrival. */
async function fetchOrTellWhy(run: Run, steps: RunSteps, signal: AbortSignal) {
  const post = steps.dropPost(run.drop);
  if (post === undefined) return await waitForDrop(run, steps);
  const entry = entryOf(run);
  try {
    return await fetchSource(run, steps.spool.inputPath(run.id), steps, signal);
  } catch (thrown) {
    if (signal.aborted || !(thrown instanceof TransientError || thrown instanceof RejectedError))
      throw thrown;
    if ((await containerOf(run, steps)) !== null) throw thrown;
    const there = await post.drop.stat(entry.path, signal);
    if (there !== null && there.size === entry.size && there.mtime === entry.mtime) throw thrown;
    const message =
      there === null
        ? "the file vanished from the drop before it was fetched"
        : `the file was replaced at the drop before it was fetched (${there.size} bytes now); the new content is an arrival of its own`;
    // What came of it may be of two versions.
    await steps.spool.discard(run.id, "input");
    await cancel(run, steps, { ...reasonOf(thrown), code: "HG-RUN-002", message });
    return REST;
  }
}

async function cancel(
  run: Run,
  steps: RunSteps,
  reason: { code: string; message: string; hint?: string | undefined },
): Promise<void> {
  await steps.ledger.advanceRun(run.id, run.state, "cancelled", { reason, detail: reason.message });
}
