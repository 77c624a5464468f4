/** `accepted → confirmed` or `discarded`, by the outcomes that the webhook told or that reading back found. */
import type { Batch, Run } from "../model.ts";
import { type ConfirmRule, REST, type RunSteps, type StepResult, waitFor } from "./steps.ts";

export async function confirmOutcome(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const post = steps.servicePost(run.binding.service);
  if (post === undefined || post.confirm.by === "none") return REST;
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
  const read = await steps
    .servicePost(run.binding.service)
    ?.delivery.readBack(run, steps.spool.segmentPath(run.id), signal);
  if (read === undefined) return REST;
  if (read.status === "read" && (read.missing === 0 || late)) {
    for (const outcome of read.outcomes) await steps.ledger.recordOutcome(outcome);
    return { move: "next" };
  }
  const reason = read.status === "read" ? `${read.missing} readings cannot be read back yet` : read.reason;
  if (!late) return waitFor(rule.everyMs, reason);
  const message = `stays accepted: within ${Math.round(rule.withinMs / 1000)} s nobody told whether it was stored (${reason})`;
  if (run.reason?.message !== message) {
    await steps.ledger.noteRun(run.id, {
      reason: { code: "HG-RUN-005", message },
      event: "run.unconfirmed",
      detail: message,
    });
  }
  return REST;
}

async function settleByOutcomes(run: Run, leaves: readonly Batch[], steps: RunSteps): Promise<StepResult> {
  const discarded = leaves.flatMap((batch) => batch.outcome?.discarded ?? []);
  const by = leaves[0]?.outcome?.by ?? "webhook";
  if (discarded.length === 0) {
    await steps.ledger.advanceRun(run.id, "accepted", "confirmed", {
      reason: null,
      detail: `every point is stored, told by ${by}`,
    });
    return REST;
  }
  const count = discarded.reduce((sum, one) => sum + one.points, 0);
  const first = discarded[0];
  const message = `the service accepted and then discarded ${count} readings: ${first?.target ?? ""} (${first?.reason ?? ""})${
    discarded.length > 1 ? ` and ${discarded.length - 1} more` : ""
  }`;
  await steps.ledger.advanceRun(run.id, "accepted", "discarded", {
    reason: { code: "HG-RUN-006", message },
    detail: message,
  });
  return REST;
}

function acceptedAtMs(run: Run, leaves: readonly Batch[]): number {
  const latest = leaves.reduce(
    (last, batch) => (batch.acceptedAt !== null && batch.acceptedAt > last ? batch.acceptedAt : last),
    "",
  );
  return Date.parse(latest === "" ? run.changedAt : latest);
}
