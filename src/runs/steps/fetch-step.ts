/** `claimed → fetched`: the bytes come into the spool, and their digest tells whether they are a duplicate. */
import type { Arrival, FileEntry, Run } from "../../model.ts";
import { UNDELIVERED_STATES } from "../../states.ts";
import { RejectedError, TransientError } from "../../support/errors.ts";
import { faultPoint } from "../../support/faults.ts";
import { fetchReplayed } from "../replay.ts";
import { containerOf, fetchSource, waitForDrop } from "../source.ts";
import {
  type DropEntry,
  entryOf,
  NEXT,
  REST,
  type RunSteps,
  reasonOf,
  type StepResult,
  waitFor,
} from "./steps.ts";

/** Should nobody tell of room before: what others leave on the disk is not heard of. */
const FULL_WAIT_MS = 2_000;
/** Longest time until a run that waits for an earlier one of its path is checked again. */
const EARLIER_WAIT_MS = 1_000;
/** A file that is listed and then missing this often in a row is not offered any more: otherwise the ledger would grow with each poll. */
const MISSING_MAX = 5;

/** While the spool is full the file stays where it is. */
export async function fetchInput(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { room, ledger } = steps;
  const arrival = await ledger.arrival(run.arrivalId);
  const isEntry = (arrival?.parentId ?? null) !== null;
  const isBody = steps.dropEntry(run.drop)?.drop.kind === "http";
  const refused = await room.reserve(run.id, run.size, isEntry, isBody);
  if (refused !== null) return await waitForSpace(run, refused, steps);
  let isFetched = false;
  try {
    const result = await fetchIntoSpool(run, arrival, steps, signal);
    isFetched = result.move === "next";
    return result;
  } finally {
    room.fetched(run.id, isFetched ? run.size : null);
  }
}

export async function waitForSpace(
  run: Run,
  { code, words }: { readonly code: string; readonly words: string },
  { ledger }: RunSteps,
): Promise<StepResult> {
  if (run.reason?.message !== words)
    await ledger.noteRun(run.id, { reason: { code, message: words }, event: "run.waiting", detail: words });
  return waitFor(FULL_WAIT_MS, words);
}

async function fetchIntoSpool(
  run: Run,
  arrival: Arrival | null,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<StepResult> {
  if (run.replay !== null) return fetchReplayed(run, run.replay, steps, signal);
  const before = arrival === null ? null : await afterEarlier(run, arrival, steps);
  if (before !== null) return before;
  const post = steps.dropEntry(run.drop);
  if (post === undefined) return await waitForDrop(run, steps);
  if (run.binding.unpack === undefined) steps.pool.prepare(run.binding.mapper);
  const fetched = await fetchOrTellWhy(run, steps, signal);
  if ("move" in fetched) return fetched;
  faultPoint("run.fetch.stored");
  const known =
    arrival === null ? null : await knownBefore(run, arrival, fetched.sha256, post.duplicates, steps);
  if (known !== null) return known;
  await steps.ledger.advanceRun(run.id, "claimed", "fetched", {
    sha256: fetched.sha256,
    reason: null,
    detail: `${fetched.bytes} bytes, sha256 ${fetched.sha256}`,
  });
  return NEXT;
}

/** What becomes of a run because of earlier arrivals, before its bytes are known; null when nothing does. */
async function afterEarlier(run: Run, arrival: Arrival, steps: RunSteps): Promise<StepResult | null> {
  if (arrival.state === "duplicate") {
    await cancel(run, steps, { code: "HG-RUN-001", message: arrival.reason });
    return REST;
  }
  const earlier = await steps.ledger.unfetchedBefore(arrival);
  if (earlier === null) return null;
  const reason = `waits for run ${earlier.id} of an earlier arrival of ${run.path}, which may have the same bytes`;
  return { move: "wait", ms: EARLIER_WAIT_MS, reason, blockedBy: earlier.id };
}

/** What becomes of a run whose bytes were fetched, when they may be known; null when its readings are to be delivered. */
export async function afterKnownContent(
  run: Run,
  sha256: string,
  steps: RunSteps,
): Promise<StepResult | null> {
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival === null) return null;
  const before = await afterEarlier(run, arrival, steps);
  const rule = steps.dropEntry(run.drop)?.duplicates ?? "skip";
  return before ?? (await knownBefore(run, arrival, sha256, rule, steps));
}

/** What becomes of a file whose bytes are known already; null when its readings are to be delivered. */
async function knownBefore(
  run: Run,
  arrival: Arrival,
  sha256: string,
  rule: DropEntry["duplicates"],
  steps: RunSteps,
): Promise<StepResult | null> {
  const { ledger } = steps;
  const earlier = await ledger.duplicateOf(arrival, sha256);
  if (earlier === null) return null;
  if (rule !== "skip" && !(await isReturn(earlier, arrival, steps))) {
    if (rule === "process") return null;
    const detail = `the same bytes came before at this path (${earlier.seenAt}); the drop's \`duplicates: flag\` has them processed again`;
    const line = { arrivalId: arrival.id, runId: run.id, operationId: null };
    await ledger.addEvent({ ...line, what: "arrival.repeated", detail });
    return null;
  }
  return takeAsKnown(run, { earlier, arrival, sha256 }, steps);
}

async function takeAsKnown(
  run: Run,
  {
    earlier,
    arrival,
    sha256,
  }: { readonly earlier: Arrival; readonly arrival: Arrival; readonly sha256: string },
  steps: RunSteps,
): Promise<StepResult> {
  const { ledger } = steps;
  const before = await ledger.runOf(earlier.id);
  if (before === null || !UNDELIVERED_STATES.includes(before.state)) {
    const message = `the same bytes came before at this path (${earlier.seenAt}) and were delivered or are under way`;
    await ledger.advanceArrival(arrival.id, "duplicate", message);
    await cancel(run, steps, { code: "HG-RUN-001", message }, sha256);
    return REST;
  }
  const message = `the same bytes came before at this path (${earlier.seenAt}): run ${before.id} rests ${before.state}, ${before.points.accepted} of its ${before.points.mapped} readings were accepted, and none of them is sent again`;
  if (arrival.parentId !== null || earlier.goneAt === null || isTakenAway(before)) {
    const reason = { code: "HG-RUN-016", message };
    await ledger.advanceRun(run.id, run.state, "quarantined", { sha256, reason, detail: message });
    return NEXT;
  }
  // The file that lies there is the one that the earlier run waits with.
  await ledger.recordReturn(earlier.id, arrival.id, message);
  await cancel(run, steps, { code: "HG-RUN-001", message });
  return REST;
}

/** The gateway archived or deleted the source, so that a file at its path is another upload. */
function isTakenAway({ finishPlan, finishedAt }: Run): boolean {
  return finishedAt !== null && finishPlan !== null && finishPlan.action !== "leave";
}

const TAKEN_AWAY: readonly string[] = ["source.archived", "source.aside", "source.deleted"];

/** The earlier version itself is back: the drop had lost it for a while, and nobody sent it again. */
export async function isReturn(
  earlier: Arrival,
  arrival: Arrival,
  { ledger }: Pick<RunSteps, "ledger">,
): Promise<boolean> {
  if (earlier.goneAt === null || earlier.size !== arrival.size || earlier.mtime !== arrival.mtime)
    return false;
  const events = await ledger.events(earlier.id);
  return !events.some(({ what }) => TAKEN_AWAY.includes(what));
}

/** A file that vanished or was replaced before its bytes were had is no longer this arrival. */
async function fetchOrTellWhy(run: Run, steps: RunSteps, signal: AbortSignal) {
  if (steps.dropEntry(run.drop) === undefined) return await waitForDrop(run, steps);
  try {
    return await fetchSource(run, steps.spool.inputPath(run.id), steps, signal);
  } catch (thrown) {
    return await afterFailedFetch(run, thrown, steps, signal);
  }
}

/** What becomes of a run whose fetch threw. Throws when it is to be tried again. */
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
  // What came of it may be of two versions.
  await steps.spool.discard(run.id, "input");
  return await leaveDrop(run, there, thrown, steps);
}

/** It was missing when it was asked for, and is there by now. */
function passing(run: Run, thrown: TransientError | RejectedError): TransientError | RejectedError {
  if (thrown.code !== "HG-DROP-006") return thrown;
  const message = `${run.path} was missing at drop ${run.drop} for a moment`;
  return new TransientError("HG-DROP-006", {
    ...{ operation: "fetch file", subject: `${run.drop}: ${run.path}`, message, cause: thrown },
    hint: "It is fetched again in a moment.",
  });
}

/** The arrival has gone, so that a listing that shows the file offers it again; `there`: what lies at its path now. */
async function leaveDrop(
  run: Run,
  there: FileEntry | null,
  thrown: TransientError | RejectedError,
  steps: RunSteps,
): Promise<StepResult> {
  const times = there === null ? await timesMissing(run, steps) : 0;
  if (times >= MISSING_MAX) {
    const message = `the drop lists the file, and each of ${times + 1} times that it was to be fetched it was not there`;
    const reason = { ...reasonOf(thrown), code: "HG-RUN-017", message, hint: undefined };
    await steps.ledger.advanceRun(run.id, run.state, "quarantined", { reason, detail: message });
    return NEXT;
  }
  const message =
    there === null
      ? "the file vanished from the drop before it was fetched; it is taken when it is listed again"
      : `the file was replaced at the drop before it was fetched (${there.size} bytes now); what is listed next is an arrival of its own`;
  const reason = { ...reasonOf(thrown), code: "HG-RUN-002", message };
  await steps.ledger.advanceRun(run.id, run.state, "cancelled", { reason, detail: message, gone: true });
  return REST;
}

/** How often in a row, until now, this version of the file was listed and then missing. */
async function timesMissing(run: Run, { ledger }: RunSteps): Promise<number> {
  const before = (await ledger.arrivalsAt(run.path, run.drop)).filter(({ id }) => id < run.arrivalId);
  let times = 0;
  for (const { id, size, mtime } of before.toReversed()) {
    if (times >= MISSING_MAX || size !== run.size || mtime !== run.mtime) break;
    const earlier = await ledger.runOf(id);
    if (earlier?.reason?.code !== "HG-RUN-002") break;
    times += 1;
  }
  return times;
}

async function cancel(
  run: Run,
  steps: RunSteps,
  reason: { code: string; message: string; hint?: string | undefined },
  sha256?: string,
): Promise<void> {
  const known = sha256 === undefined ? {} : { sha256 };
  await steps.ledger.advanceRun(run.id, run.state, "cancelled", {
    ...known,
    reason,
    detail: reason.message,
  });
}
