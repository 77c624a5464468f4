/** `fetched → empty`, or aside to `quarantined`: a file of master data is applied, and brings no readings. */

import { RejectedError, wordsOf } from "#core/errors.ts";
import type { Run } from "../../model.ts";
import { NEXT, REST, type RunSteps, type StepResult, type StructureApplied } from "./steps.ts";

/** Longest time until the run is checked again, while an earlier one of its lane is open. */
const LOOK_AGAIN_MS = 2_000;

export async function applyMasterData(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { ledger, spool, applyStructure } = steps;
  if (!(await spool.hasWholeInput(run.id, run.sha256)) && !(await spool.restoreInput(run.id, run.id, run.sha256))) {
    const detail = "the spool lost the input; it is fetched again";
    await ledger.advanceRun(run.id, "fetched", "claimed", { detail });
    return NEXT;
  }
  // A later file may change what an earlier one creates.
  const before = await ledger.blockedBy(run);
  if (before !== null) {
    const reason = `waits for the earlier file ${before.path} (${before.state})`;
    return { move: "wait", ms: LOOK_AGAIN_MS, reason, blockedBy: before.id };
  }
  steps.quota.mapped(run.id);
  const { id, drop, path, binding } = run;
  const inputPath = spool.inputPath(id);
  const applied =
    applyStructure === null
      ? refusedBy("this gateway is not inside a hub")
      : await applyStructure({ run: id, drop, path, inputPath, settings: binding.settings }, signal).catch(refusalOf);
  const { words } = applied;
  if (applied.kind === "applied") {
    const reason = { code: "HG-HUB-009", message: words };
    await ledger.advanceRun(id, "fetched", "empty", { reason, detail: words });
  } else {
    const reason = { code: "HG-HUB-008", message: words, place: applied.place };
    await ledger.advanceRun(id, "fetched", "quarantined", { reason, detail: words });
  }
  return REST;
}

function refusalOf(thrown: unknown): StructureApplied {
  if (thrown instanceof RejectedError) return refusedBy(wordsOf(thrown));
  throw thrown;
}

function refusedBy(words: string): StructureApplied {
  return { kind: "refused", words, place: {} };
}
