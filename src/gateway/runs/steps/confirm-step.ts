/**
 * `accepted → confirmed` or `discarded`, by the outcomes that the webhook reported or that reading back found;
 * `unconfirmed` when neither came in time, and from there the same way once one of them comes.
 */

import { isoInstant } from "#core/clock.ts";
import { isLeaseLost, RejectedError, TransientError, wordsOf } from "#core/errors.ts";
import { onlyOne } from "#core/promises.ts";
import { type OpenOtherDeliveries, OVERWRITTEN, type ReadBackResult } from "../../delivery/delivery.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Batch, ConfirmClock, Reason, Run } from "../../model.ts";
import { isDamage } from "./deliver-step.ts";
import { otherDeliveries } from "./other-deliveries.ts";
import { rebuildSegment } from "./segment-rebuild.ts";
import { type ConfirmRule, REST, type RunSteps, type StepResult, waitFor } from "./steps.ts";

/**
 * A clock that is written at each check would cost a commit each; a crash may lose less than this share of
 * `confirm.within`.
 */
const WRITTEN_SHARE = 1 / 20;

const SERVICE_MISSING_WAIT_MS = 60_000;
/** A person may put a lost segment back while the source is not finished yet. */
const LOST_WAIT_MS = 60_000;
const REPEATED_HINT =
  "Compare the values. `headgate replay RUN --overwrite` sends those of the file again, should they be the right ones.";
/** Shortest pause between two questions about an unconfirmed run that got no answer. */
const ASKED_AGAIN_MS = 1_000;

export async function confirmOutcome(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { service } = run.binding;
  const post = steps.serviceEntry(service);
  if (post?.confirm.by === "none") return await settle(run, steps);
  const leaves = (await steps.ledger.batches(run.id)).filter((batch) => batch.state !== "split");
  if (leaves.every((batch) => batch.outcome !== null)) return await settleByOutcomes(run, leaves, steps);
  if (post === undefined) {
    const reason = `the service ${service} is no longer in the configuration`;
    if (run.state === "unconfirmed") return waitFor(SERVICE_MISSING_WAIT_MS, reason);
    return await leaveUnconfirmed(run, `storage not confirmed: ${reason}`, steps);
  }
  const acceptedMs = acceptedAtMs(run, leaves);
  const sinceMs = steps.clock.now().epochMilliseconds - acceptedMs;
  // The webhook of an earlier operation went where its sender said.
  const isRepeated = leaves.some(({ repeats, outcome }) => repeats !== null && outcome === null);
  const readBackDue =
    post.confirm.by === "read-back" ||
    post.delivery.webhookRefusal !== null ||
    isRepeated ||
    sinceMs >= post.confirm.hangMs;
  if (run.state === "accepted" && !readBackDue)
    return waitFor(Math.min(post.confirm.hangMs - sinceMs, post.confirm.everyMs), "waits for the service's webhook");
  return await ask({ run, acceptedMs, rule: post.confirm }, steps, signal);
}

interface Awaited {
  readonly run: Run;
  readonly acceptedMs: number;
  readonly rule: ConfirmRule;
}

/** Of the service, or of what is needed to ask it. */
type Answer =
  | Extract<ReadBackResult, { status: "read" }>
  /** `retryMs`: when the run itself is to ask again. */
  | { readonly status: "away" | "refused" | "lost"; readonly reason: string; readonly retryMs: number };

async function ask(awaited: Awaited, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { run, acceptedMs, rule } = awaited;
  const { withinMs, everyMs } = rule;
  const closed = steps.reach.closed(run.binding.service);
  const answer: Answer | null =
    closed === null
      ? await readBack(awaited, steps, signal)
      : { status: "away", reason: closed.reason, retryMs: closed.ms };
  if (answer === null || signal.aborted) return REST;
  const waited = confirmClock(run, acceptedMs, steps);
  const isOver = waited.askableMs >= withinMs;
  if (answer.status === "read" && (answer.missing === 0 || isOver)) {
    for (const outcome of answer.outcomes) await steps.ledger.recordOutcome(outcome);
    if (answer.overwritten > 0)
      await steps.ledger.noteRun(run.id, {
        event: "run.overwritten",
        detail: `${answer.overwritten} of its readings have another value now: a later file brought their dates again`,
      });
    return { move: "next" };
  }
  await keepClock(run, waited, withinMs, steps);
  if (answer.status === "read") return waitFor(everyMs, `${answer.missing} readings cannot be read back yet`);
  const leftMs = withinMs - (answer.status === "away" ? waited.awayMs : waited.askableMs);
  if (run.state === "unconfirmed") return await askLater(run, answer, closed === null, steps);
  if (leftMs > 0) return waitFor(Math.min(Math.max(everyMs, answer.retryMs), leftMs), answer.reason);
  const seconds = Math.round(withinMs / 1000);
  const words = `storage not confirmed within ${seconds} s (${answer.reason})`;
  await leaveUnconfirmed(run, words, steps);
  // Asked again at once, it would get the same answer.
  return await askLater(run, answer, closed === null, steps);
}

/** Of an unconfirmed run that cannot be asked about now, or, once what was sent is lost, never again. */
async function askLater(
  run: Run,
  { status, reason, retryMs }: Exclude<Answer, { status: "read" }>,
  wasAsked: boolean,
  steps: RunSteps,
): Promise<StepResult> {
  // To ask, its payload may have been made again.
  if (wasAsked) await onlyOne(steps.spool.retire([run.id]));
  if (status !== "lost") return waitFor(Math.max(ASKED_AGAIN_MS, retryMs), reason);
  if (run.finishedAt === null) return waitFor(LOST_WAIT_MS, reason);
  await steps.ledger.noteRun(run.id, {
    reason: {
      code: "HG-RUN-005",
      message: `storage not confirmed, and the readings can no longer be read back: ${reason}`,
    },
    settled: true,
    event: "run.waiting",
    detail: reason,
  });
  return REST;
}

async function leaveUnconfirmed(run: Run, message: string, steps: RunSteps): Promise<StepResult> {
  await steps.ledger.advanceRun(run.id, "accepted", "unconfirmed", {
    reason: { code: "HG-RUN-005", message },
    detail: message,
  });
  return REST;
}

/** For a run whose outcome its service is not asked for. */
async function settle(run: Run, steps: RunSteps): Promise<StepResult> {
  await steps.ledger.noteRun(run.id, { settled: true });
  return REST;
}

/** Null when the service is no longer in the configuration. */
async function readBack(
  { run, acceptedMs, rule }: Awaited,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<Answer | null> {
  const { service } = run.binding;
  const askedMs = steps.clock.now().epochMilliseconds;
  const isLate = confirmClock(run, acceptedMs, steps).askableMs >= rule.withinMs;
  const read = await readSegment(run, isLate, steps, signal);
  if (read === undefined || signal.aborted) return null;
  if (read.status === "lost") return { ...read, retryMs: 0 };
  if (read.status === "unknown" && read.isAway) {
    const ms = steps.reach.away(service, read.reason, { askedMs, everyMs: rule.everyMs });
    // The next attempt is another run's, should it be this one that the service cannot answer.
    return { status: "away", reason: read.reason, retryMs: Math.max(2 * ms, read.retryAfterMs) };
  }
  steps.reach.answered(service);
  if (read.status === "unknown") return { status: "refused", reason: read.reason, retryMs: read.retryAfterMs };
  return isLate && isUnclear(read) ? { status: "lost", reason: read.unclear ?? "", retryMs: 0 } : read;
}

/** All missing readings have another value now, and it is unknown whether a later run brought that. */
function isUnclear({ outcomes, unclear }: Extract<ReadBackResult, { status: "read" }>): boolean {
  const reasons = outcomes.flatMap(({ discarded }) => discarded.map(({ reason }) => reason));
  return unclear !== null && reasons.length > 0 && reasons.every((reason) => reason === OVERWRITTEN);
}

/**
 * The sent readings are read from the segment, which is made again where another node had it. Undefined when the
 * service is no longer in the configuration.
 */
async function readSegment(
  run: Run,
  late: boolean,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ReadBackResult | { readonly status: "lost"; readonly reason: string } | undefined> {
  const path = steps.spool.segmentPath(run.id);
  const delivery = steps.serviceEntry(run.binding.service)?.delivery;
  const others: OpenOtherDeliveries = (placesOf) => otherDeliveries(run, placesOf, steps);
  if (await steps.spool.hasSegment(run.id))
    try {
      return await delivery?.readBack(run, path, signal, others);
    } catch (thrown) {
      if (signal.aborted || !isDamage(thrown)) throw thrown;
      steps.log.warn({ run: run.id, file: run.path, reason: thrown.message }, "a segment is damaged");
    }
  const lost = await restoreSegment(run, late, steps, signal);
  return lost === null ? await delivery?.readBack(run, path, signal, others) : { status: "lost", reason: lost };
}

/** Null when it is there now, or why it cannot be had. */
async function restoreSegment(run: Run, late: boolean, steps: RunSteps, signal: AbortSignal): Promise<string | null> {
  try {
    const fault = await rebuildSegment(run, await steps.ledger.batches(run.id), steps, signal);
    return fault === null ? null : fault.message;
  } catch (thrown) {
    if (signal.aborted || isLeaseLost(thrown)) throw thrown;
    if (!(thrown instanceof TransientError || thrown instanceof RejectedError)) throw thrown;
    // Another node has time to read back.
    if (!late && thrown.code === "HG-RUN-008") throw thrown;
    return `the spool has lost what was sent: ${wordsOf(thrown)}`;
  }
}

async function settleByOutcomes(run: Run, leaves: readonly Batch[], steps: RunSteps): Promise<StepResult> {
  const result = resultOf(leaves);
  // The guard had seen the targets otherwise.
  if (result.state === "discarded") steps.serviceEntry(run.binding.service)?.delivery.forgetStructure();
  await steps.ledger.advanceRun(run.id, run.state, result.state, { reason: result.reason, detail: result.detail });
  return REST;
}

/** A late report of the service about a run whose outcome is known corrects what reading back had concluded. */
export async function reviseOutcome(runId: string, ledger: Ledger): Promise<void> {
  const run = await ledger.run(runId);
  if (run === null || (run.state !== "confirmed" && run.state !== "discarded")) return;
  const leaves = (await ledger.batches(runId)).filter((batch) => batch.state !== "split");
  const result = resultOf(leaves);
  if (result.state === run.state || leaves.some((batch) => batch.outcome === null)) return;
  await ledger.advanceRun(runId, run.state, result.state, {
    reason: result.reason,
    detail: `${result.detail}, which corrects what was known before`,
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
    const by = [...new Set(leaves.map(({ outcome }) => (outcome?.by === "webhook" ? "reported" : "read back")))];
    return { state: "confirmed", reason: null, detail: `every point is stored, as ${by.join(" and ")}` };
  }
  const count = discarded.reduce((sum, one) => sum + one.points, 0);
  const more = discarded.length > 1 ? ` and ${discarded.length - 1} more` : "";
  const repeats = leaves.find((batch) => batch.repeats !== null && batch.outcome?.discarded.length !== 0)?.repeats;
  if (repeats !== undefined && discarded.every(({ reason }) => reason === OVERWRITTEN)) {
    const by = repeats || "an earlier operation";
    const words =
      `${count} readings were already delivered by ${by}, and the service has other values since: of a later ` +
      `file, or of a correction that this file takes back: ${first.target}${more}`;
    return { state: "discarded", reason: { code: "HG-RUN-006", message: words, hint: REPEATED_HINT }, detail: words };
  }
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

// How long an accepted run has waited for its outcome: the time in which its service could be asked, and the time in
// which it could not, apart. `confirm.within` is compared with either. Both are kept with the run, so that counting
// continues after a restart; time in which no gateway runs counts as neither.

/** `acceptedMs`: when the last of its batches was accepted, in milliseconds since 1970. */
function confirmClock(run: Run, acceptedMs: number, { reach, clock }: RunSteps): ConfirmClock {
  const now = clock.now();
  const known = run.confirmClock ?? { askableMs: 0, awayMs: 0 };
  const fromMs = run.confirmClock === null ? acceptedMs : Date.parse(run.confirmClock.until);
  const { totalMs, awayMs } = reach.seen(run.binding.service, fromMs, now.epochMilliseconds);
  return {
    askableMs: known.askableMs + totalMs - awayMs,
    awayMs: known.awayMs + awayMs,
    until: isoInstant(now),
  };
}

/** Written once enough has passed. */
async function keepClock(
  run: Run,
  now: ConfirmClock,
  withinMs: number,
  { ledger }: Pick<RunSteps, "ledger">,
): Promise<void> {
  const passed = ({ askableMs, awayMs }: ConfirmClock) => askableMs + awayMs;
  const before = run.confirmClock === null ? 0 : passed(run.confirmClock);
  if (passed(now) - before >= withinMs * WRITTEN_SHARE) await ledger.noteConfirmClock(run.id, now);
}
