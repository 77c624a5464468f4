/** `accepted → confirmed` or `discarded`, by the outcomes that the webhook told or that reading back found. */
import { OVERWRITTEN, type ReadBackResult } from "../delivery/delivery.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch, Outcome, Reason, Run } from "../model.ts";
import { isLeaseLost, RejectedError, TransientError, wordsOf } from "../support/errors.ts";
import { isDamage } from "./delivering.ts";
import { rebuildSegment } from "./mapping.ts";
import { type ConfirmRule, REST, type RunSteps, type StepResult, waitFor } from "./steps.ts";

export async function confirmOutcome(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const post = steps.servicePost(run.binding.service);
  if (post === undefined || post.confirm.by === "none") {
    await steps.ledger.noteRun(run.id, { settled: true });
    return REST;
  }
  const leaves = (await steps.ledger.batches(run.id)).filter((batch) => batch.state !== "split");
  if (leaves.every((batch) => batch.outcome !== null)) return await settleByOutcomes(run, leaves, steps);

  const sinceMs = steps.clock.now().epochMilliseconds - acceptedAtMs(run, leaves);
  const readBackDue = post.confirm.by === "read-back" || sinceMs >= post.confirm.patienceMs;
  if (!readBackDue)
    return waitFor(
      Math.min(post.confirm.patienceMs - sinceMs, post.confirm.everyMs),
      "waits for the service's webhook",
    );
  return await readBack(run, sinceMs, post.confirm, steps, signal);
}

async function readBack(
  run: Run,
  sinceMs: number,
  rule: ConfirmRule,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<StepResult> {
  const late = sinceMs >= rule.withinMs;
  const read = await readSegment(run, late, steps, signal);
  if (read === undefined) return REST;
  if (read.status === "read" && (read.missing === 0 || late)) {
    for (const outcome of read.outcomes) await steps.ledger.recordOutcome(outcome);
    return { move: "next" };
  }
  if (read.status === "read" && (await wereOverwritten(run, read.outcomes, steps))) {
    for (const outcome of read.outcomes)
      await steps.ledger.recordOutcome({ ...outcome, stored: outcome.received, discarded: [] });
    await steps.ledger.noteRun(run.id, {
      event: "run.overwritten",
      detail: `${read.missing} of its readings have another value by now: a later file brought them again`,
    });
    return { move: "next" };
  }
  const reason = read.status === "read" ? `${read.missing} readings cannot be read back yet` : read.reason;
  if (!late) {
    const leftMs = rule.withinMs - sinceMs;
    const pauseMs = read.status === "unknown" ? Math.min(read.retryAfterMs, leftMs) : 0;
    return waitFor(Math.max(rule.everyMs, pauseMs), reason);
  }
  const message = `stays accepted: within ${Math.round(rule.withinMs / 1000)} s nobody told whether it was stored (${reason})`;
  await steps.ledger.noteRun(run.id, {
    reason: { code: "HG-RUN-005", message },
    settled: true,
    event: "run.unconfirmed",
    detail: message,
  });
  return REST;
}

/** What was sent is read from the segment, which another node may have had, or made anew. Undefined when the service is not in the configuration any more. */
async function readSegment(
  run: Run,
  late: boolean,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ReadBackResult | undefined> {
  const path = steps.spool.segmentPath(run.id);
  const delivery = steps.servicePost(run.binding.service)?.delivery;
  if (await steps.spool.hasSegment(run.id))
    try {
      return await delivery?.readBack(run, path, signal);
    } catch (thrown) {
      if (signal.aborted || !isDamage(thrown)) throw thrown;
      steps.log.warn({ run: run.id, file: run.path, reason: thrown.message }, "a segment is damaged");
    }
  const lost = await restoreSegment(run, late, steps, signal);
  return lost === null
    ? await delivery?.readBack(run, path, signal)
    : { status: "unknown", reason: lost, retryAfterMs: 0 };
}

/** Null when it is there now, or why it cannot be had. */
async function restoreSegment(
  run: Run,
  late: boolean,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    return await rebuildSegment(run, await steps.ledger.batches(run.id), steps, signal);
  } catch (thrown) {
    if (signal.aborted || isLeaseLost(thrown)) throw thrown;
    if (!(thrown instanceof TransientError || thrown instanceof RejectedError)) throw thrown;
    // Another node has time to read back.
    if (!late && thrown.code === "HG-RUN-008") throw thrown;
    return `the spool has lost what was sent: ${wordsOf(thrown)}`;
  }
}

/** Readings in whose place stands what a later run of the same lane delivered: they were stored, and then corrected. */
async function wereOverwritten(run: Run, outcomes: readonly Outcome[], steps: RunSteps): Promise<boolean> {
  const discarded = outcomes.flatMap((outcome) => outcome.discarded);
  if (discarded.length === 0 || discarded.some(({ reason }) => reason !== OVERWRITTEN)) return false;
  const later = await steps.ledger.runsIn(["accepted", "confirmed"], {
    lane: run.lane,
    after: run.id,
    limit: 1,
  });
  return later.length > 0;
}

async function settleByOutcomes(run: Run, leaves: readonly Batch[], steps: RunSteps): Promise<StepResult> {
  const told = resultOf(leaves);
  // The guard had seen the targets otherwise.
  if (told.state === "discarded") steps.servicePost(run.binding.service)?.delivery.forgetStructure();
  await steps.ledger.advanceRun(run.id, "accepted", told.state, { reason: told.reason, detail: told.detail });
  return REST;
}

/** A late word of the service about a run at rest: what reading back had concluded is put right. */
export async function reviseOutcome(runId: string, ledger: Ledger): Promise<void> {
  const run = await ledger.run(runId);
  if (run === null || (run.state !== "confirmed" && run.state !== "discarded")) return;
  const leaves = (await ledger.batches(runId)).filter((batch) => batch.state !== "split");
  const told = resultOf(leaves);
  if (told.state === run.state || leaves.some((batch) => batch.outcome === null)) return;
  await ledger.advanceRun(runId, run.state, told.state, {
    reason: told.reason,
    detail: `${told.detail}, which corrects what was read back`,
  });
}

function resultOf(leaves: readonly Batch[]): {
  readonly state: "confirmed" | "discarded";
  readonly reason: Reason | null;
  readonly detail: string;
} {
  const discarded = leaves.flatMap((batch) => batch.outcome?.discarded ?? []);
  const first = discarded[0];
  if (first === undefined) {
    const by = [...new Set(leaves.map((batch) => batch.outcome?.by))].join(" and ");
    return { state: "confirmed", reason: null, detail: `every point is stored, told by ${by}` };
  }
  const count = discarded.reduce((sum, one) => sum + one.points, 0);
  const more = discarded.length > 1 ? ` and ${discarded.length - 1} more` : "";
  const message = `the service accepted and then discarded ${count} readings: ${first.target} (${first.reason})${more}`;
  return { state: "discarded", reason: { code: "HG-RUN-006", message }, detail: message };
}

function acceptedAtMs(run: Run, leaves: readonly Batch[]): number {
  const latest = leaves.reduce(
    (last, batch) => (batch.acceptedAt !== null && batch.acceptedAt > last ? batch.acceptedAt : last),
    "",
  );
  return Date.parse(latest === "" ? run.changedAt : latest);
}
