/**
 * While a run is held, later runs of its lane pass it (invariant 7). Before it continues, they are searched for dates
 * that it holds too: pushed now, its older values would replace newer ones.
 */

import { bodiesOf, parseBody, ReadingSet, readingsOf } from "#mapping/segment/payloads.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import type { Spool } from "../../spool/spool.ts";
import { collectAccepted } from "./exclusions.ts";
import { unknownDatesOf } from "./other-deliveries.ts";
import type { StepResult } from "./steps.ts";

export interface LaterDeliveryParts {
  readonly ledger: Pick<Ledger, "run" | "runOf" | "batches" | "laterRuns" | "trace" | "laterDeliverers">;
  readonly spool: Pick<Spool, "openSegment" | "segmentPath">;
}

export type Overtaken =
  /** With the later runs that were compared. */
  | { readonly status: "free"; readonly seen: readonly string[] }
  /** `isDamaged`: or its own payload has to be made again before it is known. */
  | { readonly status: "overtaken"; readonly words: string; readonly isDamaged?: boolean }
  /** A later run is delivering now. */
  | { readonly status: "wait"; readonly step: Extract<StepResult, { move: "wait" }> };

/** Later runs that are compared; with more of them the dates are not searched. */
const RUNS_MAX = 200;
const RUNS_NAMED = 3;
const BLOCKED_WAIT_MS = 5_000;
const DAMAGED = "its own payload is damaged";

export async function overtakenWords(run: Run, parts: LaterDeliveryParts): Promise<Overtaken> {
  const later = await parts.ledger.laterDeliverers(run, RUNS_MAX);
  if (later.length === 0) return { status: "free", seen: [] };
  const delivering = later.find(({ state }) => state === "delivering");
  if (delivering !== undefined) {
    const reason = `waits for the later file ${delivering.path} of the same targets, which is being delivered`;
    return {
      status: "wait",
      step: { move: "wait", ms: BLOCKED_WAIT_MS, reason, blockedBy: delivering.id },
    };
  }
  if (later.length === RUNS_MAX)
    return { status: "overtaken", words: `${RUNS_MAX} or more later files delivered to the same targets` };
  const set = new ReadingSet(`${parts.spool.segmentPath(run.id)}.overtaken.part`);
  try {
    const [gone] = await collectAccepted(later, set, parts);
    if (gone !== undefined)
      return {
        status: "overtaken",
        words: unknownDatesOf(gone),
      };
    const words = await commonReadings(run, set, parts);
    if (words === null) return { status: "free", seen: later.map(({ id }) => id) };
    return { status: "overtaken", words, isDamaged: words === DAMAGED };
  } finally {
    await set.close();
  }
}

/** The readings that later runs delivered too, in words; null when there are none. */
async function commonReadings(
  run: Run,
  set: ReadingSet,
  { ledger, spool }: LaterDeliveryParts,
): Promise<string | null> {
  let readings = 0;
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = Number.NEGATIVE_INFINITY;
  const runs = new Set<string>();
  const own = await spool.openSegment(run.id);
  if (own === null) return "its own payload is lost";
  const batches = (await ledger.batches(run.id)).filter(({ state }) => state !== "split");
  let read = 0;
  for await (const { body } of bodiesOf(own, batches)) {
    read += 1;
    for (const reading of readingsOf(parseBody(body))) {
      const by = set.runOf(reading);
      if (by === undefined) continue;
      readings += 1;
      runs.add(by);
      fromMs = Math.min(fromMs, reading.atMs);
      toMs = Math.max(toMs, reading.atMs);
    }
  }
  if (read < batches.length) return DAMAGED;
  if (readings === 0) return null;
  const named = [...runs].sort().slice(0, RUNS_NAMED).join(", ");
  const more = runs.size > RUNS_NAMED ? ` and ${runs.size - RUNS_NAMED} more` : "";
  const period = `${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}`;
  return (
    `${readings} of its readings (${period}) were delivered by later files while it was held (run ${named}${more}); ` +
    "pushed now they would replace newer values"
  );
}
