/** Makes a segment again that the spool has lost, or whose bytes are damaged. */
import type { MapResult } from "#mapping/contract.ts";
import type { Batch, Reason, Run } from "../../model.ts";
import { AGAIN, discardAgain, publishAgain } from "../../spool/segment-again.ts";
import { fetchSource, leaveToOthers, whyLost } from "../source.ts";
import { discardDamaged, isDamagedInput, mapToSegment } from "./map-step.ts";
import type { RunSteps } from "./steps.ts";

async function isInputHere({ id, replay, sha256 }: Run, { spool }: RunSteps): Promise<boolean> {
  if ((await spool.hasInput(id)) || (await spool.restoreInput(id, id, sha256))) return true;
  return replay !== null && (await spool.restoreInput(id, replay.of, sha256));
}

/** Why a segment cannot be made again. */
export type RebuildFault = Pick<Reason, "code" | "message">;

/** A damaged input is replaced once. */
async function mapWholeInput(
  run: Run,
  segmentPath: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<MapResult | { readonly status: "lost"; readonly fault: RebuildFault }> {
  try {
    return await mapToSegment(run, segmentPath, steps, signal);
  } catch (thrown) {
    if (!isDamagedInput(thrown)) throw thrown;
    await discardDamaged(run, thrown, steps);
    const fault = await bringInput(run, steps, signal);
    if (fault !== null) return { status: "lost", fault };
    return await mapToSegment(run, segmentPath, steps, signal);
  }
}

/** Brings the input of a run whose segment is lost or damaged, from wherever it is available. Null, or why not. */
async function bringInput(run: Run, steps: RunSteps, signal: AbortSignal): Promise<RebuildFault | null> {
  if (await isInputHere(run, steps)) return null;
  if (steps.dropEntry(run.drop) === undefined) await leaveToOthers(run, "the spool does not have the segment", steps);
  return await fetchInputAgain(run, steps, signal);
}

/**
 * Maps the input again; the batches must have the digests of the ledger (invariant 10). Null, or why that cannot be.
 */
export async function rebuildSegment(
  run: Run,
  batches: readonly Batch[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<RebuildFault | null> {
  const missing = await bringInput(run, steps, signal);
  if (missing !== null) return missing;
  // Under another name until the batches have the offsets of the ledger, which for a run that shared its segment do not
  // begin at 0.
  const segment = steps.spool.segmentPath(run.id);
  const again = `${segment}${AGAIN}`;
  try {
    const result = await mapWholeInput(run, again, steps, signal);
    if (result.status === "lost") return result.fault;
    if (result.status === "failed") return unmade(`the segment cannot be made again: ${result.reason.message}`);
    // Delivery restores the batches of splits, and verifies them.
    const roots = batches.filter((batch) => !batch.sequence.includes("."));
    const moves = result.batches.flatMap((from, index) => {
      const to = roots[index];
      return to?.digest === from.digest ? [{ from, to }] : [];
    });
    if (moves.length === roots.length && result.batches.length === roots.length) {
      await publishAgain(again, segment, moves);
      return null;
    }
  } finally {
    await discardAgain(again);
  }
  await steps.spool.discard(run.id, "segment");
  return unmade("mapped again, the file gives other bytes than the ledger has; nothing of it is sent");
}

function unmade(message: string): RebuildFault {
  return { code: "HG-SPOOL-002", message };
}

/** Null when the spool has it. */
async function fetchInputAgain(run: Run, steps: RunSteps, signal: AbortSignal): Promise<RebuildFault | null> {
  // Under another name until it is known to be the same: a crash here must not leave a part of it as the input.
  const part = `${steps.spool.inputPath(run.id)}.part`;
  try {
    const fetched = await fetchSource(run, part, steps, signal);
    if (fetched.sha256 !== run.sha256)
      return unmade("the spool lost the segment, and the file at the drop has other content now");
  } catch (thrown) {
    const lost = await whyLost(run, thrown, steps, signal);
    if (lost === null) throw thrown;
    return { code: "HG-RUN-014", message: `the spool lost what the file was mapped to, and ${lost}` };
  }
  await steps.spool.takeInput(run.id, part);
  return null;
}
