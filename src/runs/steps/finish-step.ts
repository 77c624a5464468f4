/** What becomes of the source file when its run has come to an end (invariant 1), and of the run's files in the spool. */

import { finishFile, type SetAside, setFileAside } from "../../drops/drop.ts";
import type { RunChange } from "../../ledger/ledger.ts";
import type { Arrival, End, FinishPlan, FinishResult, Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { type Clock, isoInstant } from "../../support/clock.ts";
import { onlyOne } from "../../support/settled.ts";
import { asideEvent, beginWatch } from "../finish-guard.ts";
import { containerOf, waitForDrop } from "../source.ts";
import { isReturn } from "./fetch-step.ts";
import { type DropEntry, entryOf, REST, type RunSteps, type StepResult } from "./steps.ts";

export async function finishSource(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const end = await endOf(run, steps);
  const post = steps.dropEntry(run.drop);
  if (post === undefined) return await waitForDrop(run, steps);
  const left = run.replay !== null && (await steps.ledger.arrival(run.arrivalId))?.goneAt !== null;
  const rule = end === null || left ? ({ action: "leave" } as const) : post.finish[end];
  if (RUN_STATES[run.state].isAwaited && steps.finishAfter(run, rule) === "confirmed") return REST;

  const container = await containerOf(run, steps);
  if (container !== null) return finishEntry(run, container, steps);
  const plan = run.finishPlan ?? steps.planFinish(rule, entryOf(run), run.id);
  if (run.finishPlan === null) await steps.ledger.noteRun(run.id, { finishPlan: plan });
  // From here on it cannot be undone; the drop itself looks whether the same file lies there still.
  if (plan.action !== "leave") await steps.ledger.fleet.assertRun(run.id);
  await discardUnsent(run, steps);
  const finished = await finishAtDrop(run, plan, post, signal);
  await steps.ledger.noteRun(run.id, sourceWords(run, plan, finished, post.guardMs, steps.clock));
  if (run.state !== "accepted") await onlyOne(steps.spool.retire([run.id]));
  return REST;
}

/**
 * What a list had mapped before it was cut short, and nobody recorded, was not sent: put away with a run that ended otherwise, it would be found as if
 * it were.
 */
async function discardUnsent({ id, state }: Run, { spool, ledger }: RunSteps): Promise<void> {
  if (state === "accepted" || !(await spool.hasSegment(id)) || (await ledger.batches(id)).length > 0) return;
  await spool.discard(id, "segment");
}

/** By the first half alone where the file is watched afterwards. */
async function finishAtDrop(
  run: Run,
  plan: FinishPlan,
  { drop, guardMs }: DropEntry,
  signal: AbortSignal,
): Promise<FinishResult | SetAside> {
  if (plan.action === "leave") return "done";
  return guardMs > 0
    ? await setFileAside(drop, { entry: entryOf(run), plan }, signal)
    : await finishFile(drop, entryOf(run), plan, signal);
}

/** What the ledger is told of a source that was finished. */
export function sourceWords(
  run: Run,
  plan: FinishPlan,
  finished: FinishResult | SetAside,
  guardMs: number,
  clock: Clock,
): RunChange {
  const at = isoInstant(clock.now());
  if (typeof finished !== "string" && (finished.result === "done" || finished.result === "waits")) {
    const watched = beginWatch(finished, guardMs, clock);
    const { what, detail } =
      finished.result === "done"
        ? asideEvent(run.path, finished, watched.endsAt)
        : { what: "source.waits", detail: `${run.path} stays for now: ${finished.why}` };
    return { finished: { at, left: finished.result === "done" }, watched, event: what, detail };
  }
  const result = typeof finished === "string" ? finished : finished.result;
  const leaves = plan.action !== "leave" && result !== "changed";
  return {
    finished: { at, left: leaves },
    event: `source.${result === "done" ? PAST[plan.action] : result}`,
    detail:
      result === "changed"
        ? "other content lies at the drop now; it was left, and is an arrival of its own"
        : plan.action === "archive"
          ? `${run.path} → ${plan.to}`
          : run.path,
  };
}

/** An entry has no source of its own: its container is finished after all its entries. */
async function finishEntry(run: Run, container: Run, steps: RunSteps): Promise<StepResult> {
  await discardUnsent(run, steps);
  await steps.ledger.noteRun(run.id, {
    finishPlan: { action: "leave" },
    finished: { at: isoInstant(steps.clock.now()), left: false },
    event: "source.left",
    detail: `in ${container.path}, which is finished after all its entries`,
  });
  if (run.state !== "accepted") await onlyOne(steps.spool.retire([run.id]));
  return REST;
}

const PAST = { leave: "left", delete: "deleted", archive: "archived" } as const;

async function endOf(run: Run, steps: RunSteps): Promise<End | null> {
  if (run.state !== "cancelled") return RUN_STATES[run.state].end;
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival?.state !== "duplicate") return null;
  return (await isFinishedAsDelivered(arrival, steps)) ? "delivered" : "duplicate";
}

/**
 * The file of a delivered run was missing when it was to be finished, and is back: nobody sent it again, so that it ends as
 * delivered files do. Where that waits for the confirmation, the file stays as other duplicates do.
 */
async function isFinishedAsDelivered(arrival: Arrival, steps: RunSteps): Promise<boolean> {
  const earlier = await steps.ledger.duplicateOf(arrival, arrival.sha256 ?? "");
  if (earlier === null || !(await isReturn(earlier, arrival, steps))) return false;
  const before = await steps.ledger.runOf(earlier.id);
  const rule = steps.dropEntry(arrival.drop)?.finish.delivered;
  if (before === null || rule === undefined || RUN_STATES[before.state].end !== "delivered") return false;
  return !(RUN_STATES[before.state].isAwaited && steps.finishAfter(before, rule) === "confirmed");
}
