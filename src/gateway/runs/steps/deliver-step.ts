/** `mapped → delivering → accepted`, in the order of lanes; to `quarantined` when the service refused readings. */

import { InvariantError } from "#core/errors.ts";
import type { DeliveryResult, DeliveryStart } from "../../delivery/delivery.ts";
import type { FinishPlan, Run } from "../../model.ts";
import { guardRun, isGuarded, quarantineUnmade } from "./guard-step.ts";
import { type RebuildFault, rebuildSegment } from "./segment-rebuild.ts";
import { entryOf, NEXT, REST, type RunSteps, type ServiceEntry, type StepResult, waitFor } from "./steps.ts";

const SERVICE_MISSING_WAIT_MS = 60_000;
/** The bytes of a batch are not those that the ledger has. */
const SEGMENT_DAMAGED = "HG-PUSH-011";
/** Longest time until a blocked run is checked again, should the end of the other not be reported. */
const BLOCKED_WAIT_MS = 5_000;
/** The same for a run of another node, whose end no other reports. */
const BLOCKED_ELSEWHERE_WAIT_MS = 500;

export async function deliverBatches(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const post = steps.serviceEntry(run.binding.service);
  if (post === undefined) {
    return waitFor(SERVICE_MISSING_WAIT_MS, `the service ${run.binding.service} is no longer in the configuration`);
  }
  const finishPlan = planOf(run, steps);
  if (run.state === "delivering") return await deliver(run, post, { finishPlan }, steps, signal);
  if (isGuarded(run, steps)) {
    const before = await steps.ledger.blockedBy(run);
    if (before !== null) return waitBehind(run, before);
    const guarded = await guardRun(run, steps, signal);
    if (guarded !== null) return guarded;
  }
  // Asked again: meanwhile a held run may have been let go.
  const begun = await steps.ledger.beginDelivery(run.id, `to ${run.binding.service}`);
  if (begun.blockedBy !== null) return waitBehind(run, begun.blockedBy);
  return await deliver(run, post, { finishPlan, batches: begun.batches }, steps, signal);
}

/**
 * The plan that the finish step would make after the acceptance, to be recorded together with it. Null where it may
 * turn out otherwise; only for files that are archived, where a rule that changes before the move loses nothing.
 */
function planOf(run: Run, steps: RunSteps): FinishPlan | null {
  const rule = steps.dropEntry(run.drop)?.finish.delivered;
  const isPlain = run.finishPlan === null && run.replay === null && !run.path.includes("!/");
  if (!isPlain || rule?.action !== "archive" || steps.finishAfter(run, rule) !== "accepted") return null;
  return steps.planFinish(rule, entryOf(run), run.id);
}

async function deliver(
  run: Run,
  { delivery }: ServiceEntry,
  start: DeliveryStart,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<StepResult> {
  const segment = steps.spool.segmentPath(run.id);
  let result: DeliveryResult;
  try {
    result = await delivery.deliver(run, segment, signal, start);
  } catch (thrown) {
    if (signal.aborted || !isDamage(thrown)) throw thrown;
    const fault = await remakeSegment(run, thrown, steps, signal);
    if (fault !== null) return await quarantineUnmade(run, "delivering", fault, steps);
    const { finishPlan = null } = start;
    result = await delivery.deliver(run, segment, signal, { finishPlan });
  }
  return signal.aborted && result.status === "kept" ? REST : await conclude(run, result, steps);
}

/** Of a segment: its bytes are not those that the ledger has, or it is missing. */
export function isDamage(thrown: unknown): thrown is InvariantError {
  return thrown instanceof InvariantError && thrown.code === SEGMENT_DAMAGED;
}

function waitBehind({ node }: Run, { id, path, state, node: other }: Run): StepResult {
  const reason = `waits for the earlier file ${path} of the same targets (${state})`;
  return { move: "wait", ms: other === node ? BLOCKED_WAIT_MS : BLOCKED_ELSEWHERE_WAIT_MS, reason, blockedBy: id };
}

/**
 * The spool lost the segment, or its disk lost power or decays: nothing of it was sent, and the input is mapped into
 * the same bytes again. Null, or why not.
 */
async function remakeSegment(
  run: Run,
  damage: InvariantError,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<RebuildFault | null> {
  const isLost = !(await steps.spool.hasSegment(run.id));
  if (!isLost)
    steps.log.warn({ run: run.id, file: run.path, code: damage.code, reason: damage.message }, "a segment is damaged");
  const fault = await rebuildSegment(run, await steps.ledger.batches(run.id), steps, signal);
  if (fault === null)
    await steps.ledger.noteRun(run.id, {
      event: "run.rebuilt",
      detail: isLost
        ? "the spool had lost the segment; it was made again with equal bytes"
        : `the segment was damaged and was made again with equal bytes (${damage.message})`,
    });
  return fault;
}

async function conclude(run: Run, result: DeliveryResult, steps: RunSteps): Promise<StepResult> {
  if (result.status === "kept") {
    // The delivery was replaced; its successor sends the run.
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
    const cause = first === undefined ? "" : `: ${first.answer} (${first.operationId})`;
    const words = `the service refused ${result.rejected} of the readings${cause}`;
    await steps.ledger.advanceRun(run.id, "delivering", "quarantined", {
      reason: { code: "HG-RUN-004", message: words, place: result.rows[0]?.place },
      rejected: result.rows,
      detail: words,
    });
    return REST;
  }
  const accepted =
    result.recorded ??
    (await steps.ledger.advanceRun(run.id, "delivering", "accepted", {
      reason: null,
      detail: `${result.points} points accepted by ${run.binding.service}`,
    }));
  return { move: "next", run: accepted };
}
