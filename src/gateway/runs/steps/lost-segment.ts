/** Ends a run with batches whose segment can never be made again, and reports the batches that were accepted. */

import { REGISTER } from "#core/register.ts";
import type { Batch, Run, RunState } from "../../model.ts";
import type { RebuildFault } from "./segment-rebuild.ts";
import { REST, type RunSteps, type StepResult } from "./steps.ts";

export async function quarantineUnmade(
  run: Run,
  from: RunState,
  { code, message }: RebuildFault,
  { ledger }: RunSteps,
): Promise<StepResult> {
  const words = `${message}; ${sentWords(await ledger.batches(run.id))}`;
  const hint = code === "HG-RUN-014" ? REGISTER[code].hint : undefined;
  await ledger.advanceRun(run.id, from, "quarantined", {
    reason: { code, message: words, ...(hint === undefined ? {} : { hint }) },
    detail: words,
  });
  return REST;
}

/** `1 of its 3 batches were accepted before (200 readings), and 1 was sent without an answer` */
function sentWords(batches: readonly Batch[]): string {
  const leaves = batches.filter(({ state }) => state !== "split");
  const accepted = leaves.filter(({ state }) => state === "accepted");
  const unanswered = leaves.filter(({ state, attempts }) => state === "sending" && attempts > 0);
  const readings = accepted.reduce((sum, { points }) => sum + points, 0);
  const said =
    accepted.length === 0
      ? `none of its ${leaves.length} batches was accepted before`
      : `${accepted.length} of its ${leaves.length} batches were accepted before (${readings} readings) and stay so`;
  return unanswered.length === 0 ? said : `${said}; ${unanswered.length} were sent without an answer`;
}
