import type { Batch, BatchSlice, BatchState, Run } from "../../model.ts";
import { RejectedError } from "../../support/errors.ts";
import type { BatchChange, Ledger, MappedRecord } from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../states.ts";
import { appendEvent } from "./events.ts";
import { blockedBy, recordTargets } from "./lanes.ts";
import { type BatchRow, toBatch } from "./rows.ts";
import { addRejectedRows, moveRun, mustFindRun } from "./runs.ts";
import { execute, executeEach, row, rows, type Steps, type Store } from "./store.ts";

type BatchMethods = Pick<Ledger, "recordMapped" | "blockedBy" | "batches" | "advanceBatch" | "splitBatch">;

export function batchMethods(store: Store): BatchMethods {
  return {
    recordMapped: (id, mapped) => store.write("run.mapped", () => recordMapped(store, id, mapped)),
    blockedBy: (run) => store.read(() => blockedBy(store, run)),
    batches: (runId) => store.look(() => batchesOf(runId)),
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

export function* batchesOf(runId: string): Steps<readonly Batch[]> {
  const found = yield* rows<BatchRow>("SELECT * FROM batches WHERE run_id = ? ORDER BY place", runId);
  return found.map(toBatch);
}

export function* findBatch(operationId: string): Steps<Batch | null> {
  const found = yield* row<BatchRow>("SELECT * FROM batches WHERE operation_id = ?", operationId);
  return found === undefined ? null : toBatch(found);
}

/** Mapped for the first time, or again after the segment was lost: then it must have come out the same (invariant 10). */
function* recordMapped(store: Store, id: string, mapped: MappedRecord): Steps<Run> {
  const run = yield* mustFindRun(id);
  const before = (yield* batchesOf(id)).filter((batch) => !batch.sequence.includes("."));
  if (before.length === 0) {
    yield* insertBatches(run, mapped.batches);
  } else if (!sameSlices(before, mapped.batches)) {
    throw new RejectedError("HG-LEDG-005", { operation: "record mapped batches", subject: id });
  }
  yield* recordTargets(id, mapped.targets);
  yield* execute("DELETE FROM rejected_rows WHERE run_id = ?", id);
  yield* addRejectedRows(id, mapped.rejected);
  yield* execute("UPDATE runs SET refused = ? WHERE id = ?", mapped.rejectedCount, id);
  yield* moveRun(store, id, "mapping", "mapped", {
    points: { mapped: mapped.points },
    detail: mapped.detail,
  });
  yield* recountAnswers(store, id);
  return yield* mustFindRun(id);
}

function sameSlices(before: readonly BatchSlice[], after: readonly BatchSlice[]): boolean {
  const words = (slice: BatchSlice) =>
    [slice.sequence, slice.offset, slice.length, slice.points, slice.digest].join(" ");
  const known = new Set(before.map(words));
  return before.length === after.length && after.every((slice) => known.has(words(slice)));
}

function operationIdOf({ id, binding }: Run, { sequence }: BatchSlice): string {
  const prefix = binding.operationPrefix;
  return `${prefix === undefined || prefix === "" ? "" : `${prefix}-`}${id}-${sequence}`;
}

function insertBatches(run: Run, slices: readonly BatchSlice[]): Steps<void> {
  return executeEach(
    `INSERT INTO batches (operation_id, run_id, sequence, place, "offset", length, points, digest, state)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'ready')`,
    ["text", "text", "text", "text", "bigint", "bigint", "bigint", "text"],
    slices.map((slice) => [
      operationIdOf(run, slice),
      run.id,
      slice.sequence,
      placeOf(slice.sequence),
      slice.offset,
      slice.length,
      slice.points,
      slice.digest,
    ]),
  );
}

function* mustFindBatch(operationId: string): Steps<Batch> {
  const batch = yield* findBatch(operationId);
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

function* moveBatch(
  store: Store,
  operationId: string,
  from: BatchState,
  to: BatchState,
  change: BatchChange,
): Steps<Batch> {
  const batch = yield* mustFindBatch(operationId);
  yield* store.assertRun(batch.runId);
  if (batch.state !== from)
    throw brokenInvariant(
      "advance batch",
      operationId,
      `batch ${operationId} is ${batch.state}, and not ${from} as was thought`,
    );
  assertTransition("batch", operationId, from, to);
  const now = store.now();
  yield* execute(
    `UPDATE batches SET state = ?, attempts = attempts + ?, answer = coalesce(?, answer),
      accepted_at = coalesce(accepted_at, ?) WHERE operation_id = ?`,
    to,
    change.attempted === true ? 1 : 0,
    change.answer ?? null,
    to === "accepted" ? now : null,
    operationId,
  );
  if (to === "accepted" || to === "rejected") yield* recountAnswers(store, batch.runId);
  const after = yield* mustFindBatch(operationId);
  yield* appendEvent(store, {
    arrivalId: (yield* mustFindRun(batch.runId)).arrivalId,
    runId: batch.runId,
    operationId,
    what: `batch.${to}`,
    detail:
      change.attempted === true ? `attempt ${after.attempts}, ${batch.points} points` : (change.answer ?? ""),
  });
  return after;
}

function* splitBatch(
  store: Store,
  operationId: string,
  children: readonly BatchSlice[],
  answer: string,
): Steps<readonly Batch[]> {
  const parent = yield* mustFindBatch(operationId);
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
  yield* moveBatch(store, operationId, "sending", "split", { answer });
  const run = yield* mustFindRun(parent.runId);
  yield* insertBatches(run, children);
  yield* recountOutcomes(store, run.id);
  const made: Batch[] = [];
  for (const child of children) made.push(yield* mustFindBatch(operationIdOf(run, child)));
  return made;
}

/** Inside a write: points by the answers to the leaves. */
export function* recountAnswers(store: Store, runId: string): Steps<void> {
  yield* execute(
    `UPDATE runs SET changed_at = ?,
      accepted = (SELECT coalesce(sum(points), 0) FROM batches WHERE run_id = runs.id AND state = 'accepted'),
      rejected = refused + (SELECT coalesce(sum(points), 0) FROM batches WHERE run_id = runs.id AND state = 'rejected')
      WHERE id = ?`,
    store.now(),
    runId,
  );
}

/** Inside a write: points by the outcomes of the leaves. */
export function* recountOutcomes(store: Store, runId: string): Steps<void> {
  const leaves = (yield* batchesOf(runId)).filter((batch) => batch.state !== "split");
  const outcomes = leaves.flatMap((batch) => (batch.outcome === null ? [] : [batch.outcome]));
  const stored = outcomes.reduce((sum, outcome) => sum + outcome.stored, 0);
  const discarded = outcomes
    .flatMap((outcome) => outcome.discarded)
    .reduce((sum, target) => sum + target.points, 0);
  yield* execute(
    "UPDATE runs SET stored = ?, discarded = ?, changed_at = ? WHERE id = ?",
    stored,
    discarded,
    store.now(),
    runId,
  );
}
