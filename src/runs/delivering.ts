/** `mapped → delivering → accepted`, in the order of lanes; aside to `quarantined` when the service refused readings. */
import type { DeliveryResult } from "../delivery/delivery.ts";
import type { Run } from "../model.ts";
import { InvariantError } from "../support/errors.ts";
import { guardRun, isGuarded } from "./guarding.ts";
import { rebuildSegment } from "./mapping.ts";
import { NEXT, REST, type RunSteps, type StepResult, waitFor } from "./steps.ts";

const SERVICE_MISSING_WAIT_MS = 60_000;
/** The bytes of a batch are not those that the ledger has. */
const SEGMENT_DAMAGED = "HG-PUSH-011";
/** Longest time until a blocked run is looked at again, should nobody tell that the other is done. */
const BLOCKED_WAIT_MS = 5_000;

export async function deliverBatches(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const post = steps.servicePost(run.binding.service);
  if (post === undefined) {
    return waitFor(
      SERVICE_MISSING_WAIT_MS,
      `the service ${run.binding.service} is not in the configuration any more`,
    );
  }
  if (run.state === "mapped") {
    if (isGuarded(run, steps)) {
      const before = await steps.ledger.blockedBy(run);
      if (before !== null) return waitBehind(before);
      const guarded = await guardRun(run, steps, signal);
      if (guarded !== null) return guarded;
    }
    // Asked again: meanwhile a held run may have been let go.
    const begun = await steps.ledger.beginDelivery(run.id, `to ${run.binding.service}`);
    if (begun.blockedBy !== null) return waitBehind(begun.blockedBy);
  }
  if (!(await steps.spool.hasSegment(run.id))) {
    const fault = await rebuildSegment(run, await steps.ledger.batches(run.id), steps, signal);
    if (fault !== null) return await quarantine(run, "HG-SPOOL-002", fault, steps);
    await steps.ledger.noteRun(run.id, {
      event: "run.rebuilt",
      detail: "the spool had lost the segment; it was made again with equal bytes",
    });
  }
  const segment = steps.spool.segmentPath(run.id);
  const deliver = () => post.delivery.deliver(run, segment, signal);
  const result = await deliver().catch(async (thrown: unknown) => {
    if (signal.aborted || !(thrown instanceof InvariantError) || thrown.code !== SEGMENT_DAMAGED)
      throw thrown;
    const fault = await remakeSegment(run, thrown, steps, signal);
    return fault === null ? deliver() : fault;
  });
  if (typeof result === "string") return await quarantine(run, "HG-SPOOL-002", result, steps);
  return signal.aborted && result.status === "kept" ? REST : await conclude(run, result, steps);
}

function waitBehind({ id, path, state }: Run): StepResult {
  const reason = `waits for the earlier file ${path} of the same targets (${state})`;
  return { move: "wait", ms: BLOCKED_WAIT_MS, reason, blockedBy: id };
}

/** A disk that lost power, or decays: nothing of it was sent, and the input is mapped into the same bytes again. Null, or why not. */
async function remakeSegment(
  run: Run,
  damage: InvariantError,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<string | null> {
  steps.log.warn(
    { run: run.id, file: run.path, code: damage.code, reason: damage.message },
    "a segment is damaged",
  );
  const fault = await rebuildSegment(run, await steps.ledger.batches(run.id), steps, signal);
  if (fault === null)
    await steps.ledger.noteRun(run.id, {
      event: "run.rebuilt",
      detail: `the segment was damaged and was made again with equal bytes (${damage.message})`,
    });
  return fault;
}

async function conclude(run: Run, result: DeliveryResult, steps: RunSteps): Promise<StepResult> {
  if (result.status === "kept") {
    // What was to send it is no longer in force; its successor is.
    if (result.retryAfterMs === 0 && !result.wholeService) return NEXT;
    if (run.reason?.message !== result.reason) {
      await steps.ledger.noteRun(run.id, {
        reason: { code: result.code, message: result.reason },
        event: "run.waiting",
        detail: result.reason,
      });
    }
    return {
      move: "wait",
      ms: result.retryAfterMs,
      reason: result.reason,
      wholeService: result.wholeService,
      failing: true,
    };
  }
  if (result.status === "rejected") {
    const first = result.faults[0];
    const words = `the service refused ${result.rejected} of the readings${first === undefined ? "" : `: ${first.answer} (${first.operationId})`}`;
    await steps.ledger.advanceRun(run.id, "delivering", "quarantined", {
      reason: { code: "HG-RUN-004", message: words, place: result.rows[0]?.place },
      rejected: result.rows,
      detail: words,
    });
    return REST;
  }
  await steps.ledger.advanceRun(run.id, "delivering", "accepted", {
    reason: null,
    detail: `${result.points} points accepted by ${run.binding.service}`,
  });
  return NEXT;
}

async function quarantine(run: Run, code: string, message: string, steps: RunSteps): Promise<StepResult> {
  await steps.ledger.advanceRun(run.id, "delivering", "quarantined", {
    reason: { code, message },
    detail: message,
  });
  return REST;
}
