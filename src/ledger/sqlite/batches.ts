import type { Batch, BatchSlice, BatchState, Run } from "../../model.ts";
import { RejectedError } from "../../support/errors.ts";
import type { BatchChange, Ledger, MappedRecord } from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../states.ts";
import { appendEvent } from "./events.ts";
import { blockedBy, recordTargets } from "./lanes.ts";
import { type BatchRow, toBatch } from "./rows.ts";
import { addRejectedRows, moveRun, mustFindRun } from "./runs.ts";
import { row, rows, type Store } from "./store.ts";

type BatchMethods = Pick<Ledger, "recordMapped" | "blockedBy" | "batches" | "advanceBatch" | "splitBatch">;

export function batchMethods(store: Store): BatchMethods {
  return {
    recordMapped: (id, mapped) => store.write("run.mapped", () => recordMapped(store, id, mapped)),
    blockedBy: async (run) => blockedBy(store, run),
    batches: async (runId) => batchesOf(store, runId),
    advanceBatch: (operationId, from, to, change) =>
      store.write(`batch.${to}`, () => {
        if (to === "split")
          throw brokenInvariant("advance batch", operationId, "a batch is split by splitBatch alone");
        return moveBatch(store, operationId, from, to, change ?? {});
      }),
    splitBatch: (operationId, children, answer) =>
      store.write("batch.split", () => splitBatch(store, operationId, children, answer)),
  };
}

export function batchesOf(store: Store, runId: string): readonly Batch[] {
  return rows<BatchRow>(store.sql("SELECT * FROM batches WHERE run_id = ? ORDER BY place"), runId).map(
    toBatch,
  );
}

export function findBatch(store: Store, operationId: string): Batch | null {
  const found = row<BatchRow>(store.sql("SELECT * FROM batches WHERE operation_id = ?"), operationId);
  return found === undefined ? null : toBatch(found);
}

/** Mapped for the first time, or again after the segment was lost: then it must have come out the same (invariant 10). */
function recordMapped(store: Store, id: string, mapped: MappedRecord): Run {
  const run = mustFindRun(store, id);
  const before = batchesOf(store, id).filter((batch) => !batch.sequence.includes("."));
  if (before.length === 0) {
    for (const slice of mapped.batches) insertBatch(store, run, slice);
  } else if (!sameSlices(before, mapped.batches)) {
    throw new RejectedError("HG-LEDG-005", { operation: "record mapped batches", subject: id });
  }
  recordTargets(store, id, mapped.targets);
  store.sql("DELETE FROM rejected_rows WHERE run_id = ?").run(id);
  addRejectedRows(store, id, mapped.rejected);
  store.sql("UPDATE runs SET refused = ? WHERE id = ?").run(mapped.rejectedCount, id);
  moveRun(store, id, "mapping", "mapped", { points: { mapped: mapped.points }, detail: mapped.detail });
  recountAnswers(store, id);
  return mustFindRun(store, id);
}

function sameSlices(before: readonly BatchSlice[], after: readonly BatchSlice[]): boolean {
  const words = (slice: BatchSlice) =>
    [slice.sequence, slice.offset, slice.length, slice.points, slice.digest].join(" ");
  const known = new Set(before.map(words));
  return before.length === after.length && after.every((slice) => known.has(words(slice)));
}

function insertBatch(store: Store, run: Run, slice: BatchSlice): Batch {
  const prefix = run.binding.operationPrefix;
  const operationId = `${prefix === undefined || prefix === "" ? "" : `${prefix}-`}${run.id}-${slice.sequence}`;
  store
    .sql(`INSERT INTO batches (operation_id, run_id, sequence, place, offset, length, points, digest, state)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'ready')`)
    .run(
      operationId,
      run.id,
      slice.sequence,
      placeOf(slice.sequence),
      slice.offset,
      slice.length,
      slice.points,
      slice.digest,
    );
  return mustFindBatch(store, operationId);
}

function mustFindBatch(store: Store, operationId: string): Batch {
  const batch = findBatch(store, operationId);
  if (batch === null)
    throw brokenInvariant("find batch", operationId, `there is no operation ${operationId} in the ledger`);
  return batch;
}

/** `7.1` → `0000000007.0000000001`: a split batch sorts before its children, and they before the next batch. */
function placeOf(sequence: string): string {
  if (!/^[1-9]\d{0,9}(\.[1-9]\d{0,9})*$/.test(sequence))
    throw brokenInvariant("record batch", sequence, `"${sequence}" is no sequence of a batch`);
  return sequence
    .split(".")
    .map((part) => part.padStart(10, "0"))
    .join(".");
}

function moveBatch(
  store: Store,
  operationId: string,
  from: BatchState,
  to: BatchState,
  change: BatchChange,
): Batch {
  const batch = mustFindBatch(store, operationId);
  if (batch.state !== from)
    throw brokenInvariant(
      "advance batch",
      operationId,
      `batch ${operationId} is ${batch.state}, and not ${from} as was thought`,
    );
  assertTransition("batch", operationId, from, to);
  const now = store.now();
  store
    .sql(`UPDATE batches SET state = ?, attempts = attempts + ?, answer = coalesce(?, answer),
      accepted_at = coalesce(accepted_at, ?) WHERE operation_id = ?`)
    .run(
      to,
      change.attempted === true ? 1 : 0,
      change.answer ?? null,
      to === "accepted" ? now : null,
      operationId,
    );
  if (to === "accepted" || to === "rejected") recountAnswers(store, batch.runId);
  const after = mustFindBatch(store, operationId);
  appendEvent(store, {
    arrivalId: mustFindRun(store, batch.runId).arrivalId,
    runId: batch.runId,
    operationId,
    what: `batch.${to}`,
    detail: change.answer ?? (to === "sending" ? `attempt ${after.attempts}, ${batch.points} points` : ""),
  });
  return after;
}

function splitBatch(
  store: Store,
  operationId: string,
  children: readonly BatchSlice[],
  answer: string,
): readonly Batch[] {
  const parent = mustFindBatch(store, operationId);
  const points = children.reduce((sum, child) => sum + child.points, 0);
  const ours = children.every((child) => /^\.\d+$/.test(child.sequence.slice(parent.sequence.length)));
  if (!ours || !children.every((child) => child.sequence.startsWith(`${parent.sequence}.`)))
    throw brokenInvariant("split batch", operationId, "a child's sequence does not follow its parent's");
  if (children.length === 0 || points !== parent.points)
    throw brokenInvariant(
      "split batch",
      operationId,
      `the children hold ${points} points, the batch ${parent.points}`,
    );
  moveBatch(store, operationId, "sending", "split", { answer });
  const run = mustFindRun(store, parent.runId);
  const made = children.map((child) => insertBatch(store, run, child));
  recountOutcomes(store, run.id);
  return made;
}

/** Inside a write: points by the answers to the leaves. */
export function recountAnswers(store: Store, runId: string): void {
  store
    .sql(`UPDATE runs SET changed_at = ?,
      accepted = (SELECT coalesce(sum(points), 0) FROM batches WHERE run_id = runs.id AND state = 'accepted'),
      rejected = refused + (SELECT coalesce(sum(points), 0) FROM batches WHERE run_id = runs.id AND state = 'rejected')
      WHERE id = ?`)
    .run(store.now(), runId);
}

/** Inside a write: points by the outcomes of the leaves. */
export function recountOutcomes(store: Store, runId: string): void {
  const leaves = batchesOf(store, runId).filter((batch) => batch.state !== "split");
  const outcomes = leaves.flatMap((batch) => (batch.outcome === null ? [] : [batch.outcome]));
  const stored = outcomes.reduce((sum, outcome) => sum + outcome.stored, 0);
  const discarded = outcomes
    .flatMap((outcome) => outcome.discarded)
    .reduce((sum, target) => sum + target.points, 0);
  store
    .sql("UPDATE runs SET stored = ?, discarded = ?, changed_at = ? WHERE id = ?")
    .run(stored, discarded, store.now(), runId);
}
