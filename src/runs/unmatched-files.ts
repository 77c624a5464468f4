/** Files that no trigger claims: the ledger records them, and the rule of their drop finishes them. */
import { finishFile, setFileAside } from "../drops/drop.ts";
import type { Arrival, FinishPlan } from "../model.ts";
import { wordsOf } from "../support/errors.ts";
import type { ClaimParts } from "./claim-parts.ts";
import { asideEvent, beginWatch } from "./finish-watch.ts";
import type { DropEntry } from "./steps/steps.ts";

/** Milliseconds for the finish of one file. */
const FINISH_MS = 60_000;

export async function leaveUnmatched(arrival: Arrival, why: string, parts: ClaimParts): Promise<void> {
  if (arrival.state !== "unmatched" || arrival.reason !== why)
    await parts.ledger.advanceArrival(arrival.id, "unmatched", why);
}

/**
 * Applies the drop's rule for unmatched files. A failure is tried again when the triggers are asked again.
 */
export async function finishUnmatched(arrival: Arrival, parts: ClaimParts): Promise<void> {
  const entry = parts.dropEntry(arrival.drop);
  if (entry === undefined || arrival.parentId !== null || entry.finish.unmatched.action === "leave") return;
  const plan = parts.planFinish(entry.finish.unmatched, arrival, `unmatched-${arrival.id}`);
  // One after another, so that the drop has time for other calls.
  const turn = parts.finishing.enter();
  try {
    await turn.mine;
    await parts.ledger.fleet.assertDrop(arrival.drop);
    const signal = AbortSignal.timeout(FINISH_MS);
    if (entry.guardMs > 0) {
      await setAsideUnmatched(arrival, plan, entry, parts, signal);
      return;
    }
    const result = await finishFile(entry.drop, arrival, plan, signal);
    const what = result === "done" ? (plan.action === "archive" ? "archived" : "deleted") : result;
    const detail = plan.action === "archive" ? `${arrival.path} → ${plan.to}` : arrival.path;
    await addSourceEvent(arrival, `source.${what}`, detail, parts);
  } catch (thrown) {
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, reason: wordsOf(thrown) },
      "an unmatched file could not be finished",
    );
  } finally {
    turn.pass();
  }
}

async function setAsideUnmatched(
  arrival: Arrival,
  plan: FinishPlan,
  { drop, guardMs }: DropEntry,
  parts: ClaimParts,
  signal: AbortSignal,
): Promise<void> {
  const before = await parts.ledger.finishedFiles.of(arrival.id);
  // The time of the guard is not extended when the triggers are asked again.
  if (before !== null && before.size === arrival.size && before.mtime === arrival.mtime) return;
  const aside = await setFileAside(drop, { entry: arrival, plan }, signal);
  if (aside.result !== "done" && aside.result !== "waits")
    return await addSourceEvent(arrival, `source.${aside.result}`, arrival.path, parts);
  const watched = beginWatch(aside, guardMs, parts.clock);
  const event =
    aside.result === "done"
      ? asideEvent(arrival.path, aside, watched.endsAt)
      : { what: "source.waits", detail: `${arrival.path} stays for now: ${aside.why}` };
  const { drop: name, path, size, mtime } = arrival;
  const file = { ...watched, drop: name, path, size, mtime, arrivalId: arrival.id };
  await parts.ledger.finishedFiles.watch(file, event);
}

function addSourceEvent({ id }: Arrival, what: string, detail: string, { ledger }: ClaimParts): Promise<void> {
  return ledger.addEvent({ arrivalId: id, runId: null, operationId: null, what, detail });
}
