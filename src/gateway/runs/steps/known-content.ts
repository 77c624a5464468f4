/** Decides about a file whose bytes came before at its path. */
import type { Arrival, Run } from "../../model.ts";
import { UNDELIVERED_STATES } from "../../states.ts";
import { type DropEntry, NEXT, REST, type RunSteps, type StepResult } from "./steps.ts";

/** Longest time until a run that waits for an earlier one of its path is checked again. */
const EARLIER_WAIT_MS = 1_000;

/** Ends a run, or has it wait, because of earlier arrivals, before its bytes are known; null when it continues. */
export async function afterEarlier(run: Run, arrival: Arrival, steps: RunSteps): Promise<StepResult | null> {
  if (arrival.state === "duplicate") {
    await cancel(run, steps, { code: "HG-RUN-001", message: arrival.reason });
    return REST;
  }
  const earlier = await steps.ledger.unfetchedBefore(arrival);
  if (earlier === null) return null;
  const reason = `waits for run ${earlier.id} of an earlier arrival of ${run.path}, which may have the same bytes`;
  return { move: "wait", ms: EARLIER_WAIT_MS, reason, blockedBy: earlier.id };
}

/** Ends a run whose bytes were fetched and may be known, or has it wait; null when its readings are delivered. */
export async function afterKnownContent(run: Run, sha256: string, steps: RunSteps): Promise<StepResult | null> {
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival === null) return null;
  const before = await afterEarlier(run, arrival, steps);
  const rule = steps.dropEntry(run.drop)?.duplicates ?? "skip";
  return before ?? (await knownBefore(run, arrival, sha256, rule, steps));
}

/** Ends a run whose bytes are known; null when its readings are delivered. */
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
    const detail =
      `the same bytes came before at this path (${earlier.seenAt}); ` +
      "the drop's `duplicates: flag` has them processed again";
    const line = { arrivalId: arrival.id, runId: run.id, operationId: null };
    await ledger.addEvent({ ...line, what: "arrival.repeated", detail });
    return null;
  }
  return takeAsKnown(run, { earlier, arrival, sha256 }, steps);
}

async function takeAsKnown(
  run: Run,
  { earlier, arrival, sha256 }: { readonly earlier: Arrival; readonly arrival: Arrival; readonly sha256: string },
  steps: RunSteps,
): Promise<StepResult> {
  const { ledger } = steps;
  const before = await ledger.runOf(earlier.id);
  if (before === null || !UNDELIVERED_STATES.includes(before.state)) {
    const place = `at this path (${earlier.seenAt})`;
    const message = `the same bytes came before ${place} and were delivered or are being processed`;
    await ledger.advanceArrival(arrival.id, "duplicate", message);
    await cancel(run, steps, { code: "HG-RUN-001", message }, sha256);
    return REST;
  }
  const { accepted, mapped } = before.points;
  const message =
    `the same bytes came before at this path (${earlier.seenAt}): run ${before.id} rests ${before.state}, ` +
    `${accepted} of its ${mapped} readings were accepted, and none of them is sent again`;
  if (arrival.parentId !== null || earlier.goneAt === null || isTakenAway(before)) {
    const reason = { code: "HG-RUN-016", message };
    await ledger.advanceRun(run.id, run.state, "quarantined", { sha256, reason, detail: message });
    return NEXT;
  }
  // The file at the path is the one that the earlier run waits with.
  await ledger.recordReturn(earlier.id, arrival.id, message);
  await cancel(run, steps, { code: "HG-RUN-001", message });
  return REST;
}

/** The gateway archived or deleted the source, so that a file at its path is another upload. */
function isTakenAway({ finishPlan, finishedAt }: Run): boolean {
  return finishedAt !== null && finishPlan !== null && finishPlan.action !== "leave";
}

const TAKEN_AWAY: readonly string[] = ["source.archived", "source.aside", "source.deleted"];

/** The earlier version itself is back: the drop had lost it for a while, and it is no second upload. */
export async function isReturn(
  earlier: Arrival,
  arrival: Arrival,
  { ledger }: Pick<RunSteps, "ledger">,
): Promise<boolean> {
  if (earlier.goneAt === null || earlier.size !== arrival.size || earlier.mtime !== arrival.mtime) return false;
  const events = await ledger.events(earlier.id);
  return !events.some(({ what }) => TAKEN_AWAY.includes(what));
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
