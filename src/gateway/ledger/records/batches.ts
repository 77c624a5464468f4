import { hash } from "node:crypto";
import type { InvariantError } from "#core/errors.ts";
import { cells, execute, executeEach, type Steps } from "#core/sql/statements.ts";
import { counted } from "#core/text.ts";
import type { Batch, BatchSlice, BatchState, IsoInstant, Run } from "../../model.ts";
import { BATCH_STATES } from "../../states.ts";
import type { BatchChange, Ledger } from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../transitions.ts";
import { appendEvent } from "./events.ts";
import { blockedBy } from "./lanes.ts";
import { BATCH_CELLS, BATCH_COLUMNS, type BatchCells, toBatch } from "./rows.ts";
import { mustFindRun } from "./runs.ts";
import type { Store } from "./store.ts";

type BatchMethods = Pick<Ledger, "blockedBy" | "batches" | "advanceBatch" | "splitBatch" | "renewKey">;

export function batchMethods(store: Store): BatchMethods {
  return {
    blockedBy: (run) => store.read(() => blockedBy(store, run)),
    batches: (runId) => store.look(() => batchesOf(runId)),
    advanceBatch: (operationId, from, to, change) =>
      store.write(`batch.${to}`, () => {
        if (to === "split") throw brokenInvariant("advance batch", operationId, "a batch is split by splitBatch alone");
        return moveBatch(store, operationId, from, to, change ?? {});
      }),
    splitBatch: (operationId, children, answer, repeats) =>
      store.write("batch.split", () => splitBatch(store, operationId, children, { answer, repeats })),
    renewKey: (operationId, answer) => store.write("batch.ready", () => renewKey(store, operationId, answer)),
  };
}

export function* batchesOf(runId: string): Steps<readonly Batch[]> {
  const found = yield* cells<BatchCells>(`SELECT ${BATCH_COLUMNS} FROM batches WHERE run_id = ? ORDER BY place`, runId);
  return found.map(toBatch);
}

export function* findBatch(operationId: string): Steps<Batch | null> {
  const [found] = yield* cells<BatchCells>(`SELECT ${BATCH_COLUMNS} FROM batches WHERE operation_id = ?`, operationId);
  return found === undefined ? null : toBatch(found);
}

function operationIdOf({ id, binding }: Run, { sequence }: BatchSlice): string {
  const { operationPrefix: prefix, namesTrigger, trigger } = binding;
  // Triggers of a service are named `<service>:<id>`.
  const triggerId = namesTrigger === true ? /:(\d+)$/.exec(trigger)?.[1] : undefined;
  return [prefix, triggerId && `trigger-${triggerId}`, id, sequence].filter(Boolean).join("-");
}

export interface Keyed {
  /** From which the keys follow; null: the operation ids are the keys. */
  readonly origin: string | null;
  readonly repeats?: string | undefined;
}

/** For use inside a write. */
export function insertBatches(run: Run, slices: readonly BatchSlice[], { origin, repeats }: Keyed): Steps<void> {
  return executeEach(
    `INSERT INTO batches (operation_id, run_id, sequence, place, "offset", length, points, digest, idempotency_key,
      repeats, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready')`,
    ["text", "text", "text", "text", "bigint", "bigint", "bigint", "text", "text", "text"],
    slices.map((slice) => [
      operationIdOf(run, slice),
      run.id,
      slice.sequence,
      placeOf(slice.sequence),
      slice.offset,
      slice.length,
      slice.points,
      slice.digest,
      origin === null ? null : keyAfter(origin, slice.digest),
      repeats ?? null,
    ]),
  );
}

/**
 * The Idempotency-Keys of a run follow from what is delivered, and from nothing that only this ledger knows, so that
 * one that was lost, or another on the same drop, makes the same keys. Null for what a person ordered, and for a drop
 * without an address: their operation ids are the keys.
 */
export function keyOrigin(run: Run, sha256: string, { occurrence, forgottenAt }: KeyFacts): string | null {
  const { address, mapper, settings, rows, rejectShare, limits, lookups = [], zones, version } = run.binding;
  const isOrdered = run.replay !== null && run.replay.continues !== "claim";
  if (address === undefined || isOrdered) return null;
  const file = [`${address}/${run.path}`, run.size, run.mtime, sha256, occurrence, forgottenAt];
  const tables = lookups.map(({ name, digest }) => [name, digest]);
  const made = [mapper.name, mapper.digest, settings, rows, rejectShare, limits, tables, zones, version];
  return keyAfter(JSON.stringify([file, made], sortedKeys), "");
}

export interface KeyFacts {
  /** Earlier arrivals of the same version of the file at its path: A, B and A again are two of A. */
  readonly occurrence: number;
  /** When a person last had the file forgotten; it is delivered again then. */
  readonly forgottenAt: IsoInstant | null;
}

/** Settings in another order are the same settings. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function keyAfter(before: string, what: string): string {
  return hash("sha256", `${before}\n${what}`);
}

function* renewKey(store: Store, operationId: string, answer: string): Steps<Batch> {
  const batch = yield* moveBatch(store, operationId, "sending", "ready", { answer });
  const idempotencyKey = keyAfter(batch.idempotencyKey, "again");
  yield* execute(
    "UPDATE batches SET idempotency_key = ?, repeats = NULL WHERE operation_id = ?",
    idempotencyKey,
    operationId,
  );
  return { ...batch, idempotencyKey, repeats: null };
}

function* mustFindBatch(operationId: string): Steps<Batch> {
  const batch = yield* findBatch(operationId);
  if (batch === null) throw missingBatch(operationId);
  return batch;
}

export function missingBatch(operationId: string): InvariantError {
  return brokenInvariant("find batch", operationId, `there is no operation ${operationId} in the ledger`);
}

/** A batch with its arrival and file. */
type OfFile = readonly [arrivalId: number, drop: string, path: string];
type BatchInFile = readonly [...BatchCells, ...OfFile];

const SELECT_IN_FILE = `SELECT ${BATCH_COLUMNS}, runs.arrival_id, runs.drop_name, runs.path
  FROM batches JOIN runs ON runs.id = batches.run_id WHERE batches.operation_id = ?`;

/**
 * `7.1` → `0000000007.0000000001`: a split batch sorts before its children, and they before the next batch.
 */
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
  const [found] = yield* cells<BatchInFile>(SELECT_IN_FILE, operationId);
  if (found === undefined) throw missingBatch(operationId);
  const [arrivalId, drop, path] = found.slice(BATCH_CELLS) as unknown as OfFile;
  const batch = toBatch(found as unknown as BatchCells);
  yield* store.assertRun(batch.runId);
  assertState(batch, from);
  assertTransition("batch", operationId, from, to);
  const after: Batch = {
    ...batch,
    state: to,
    attempts: batch.attempts + (change.attempted === true ? 1 : 0),
    answer: change.answer ?? batch.answer,
    acceptedAt: batch.acceptedAt ?? (to === "accepted" ? store.now() : null),
  };
  yield* execute(
    "UPDATE batches SET state = ?, attempts = ?, answer = ?, accepted_at = ? WHERE operation_id = ?",
    to,
    after.attempts,
    after.answer,
    after.acceptedAt,
    operationId,
  );
  if (BATCH_STATES[to].isAnswer) yield* recountAnswers(store, batch.runId);
  const words =
    change.attempted === true ? `attempt ${after.attempts}, ${counted(batch.points, "point")}` : change.answer;
  yield* appendEvent(
    store,
    {
      arrivalId,
      runId: batch.runId,
      operationId,
      what: `batch.${to}`,
      detail: words ?? "",
    },
    { drop, path },
  );
  return after;
}

/** Guards against concurrent changes of the same batch. */
export function assertState({ operationId, state }: Pick<Batch, "operationId" | "state">, from: BatchState): void {
  if (state === from) return;
  const words = `batch ${operationId} is ${state}, and not ${from} as expected`;
  throw brokenInvariant("advance batch", operationId, words);
}

function* splitBatch(
  store: Store,
  operationId: string,
  children: readonly BatchSlice[],
  { answer, repeats }: { readonly answer: string; readonly repeats: string | undefined },
): Steps<readonly Batch[]> {
  const parent = yield* mustFindBatch(operationId);
  const points = children.reduce((sum, child) => sum + child.points, 0);
  const ours = children.every((child) => /^\.\d+$/.test(child.sequence.slice(parent.sequence.length)));
  if (!ours || !children.every((child) => child.sequence.startsWith(`${parent.sequence}.`)))
    throw brokenInvariant("split batch", operationId, "a child's sequence does not follow its parent's");
  if (children.length === 0 || points !== parent.points)
    throw brokenInvariant("split batch", operationId, `the children hold ${points} points, the batch ${parent.points}`);
  yield* moveBatch(store, operationId, "sending", "split", { answer });
  const run = yield* mustFindRun(parent.runId);
  const origin = parent.idempotencyKey === operationId ? null : parent.idempotencyKey;
  yield* insertBatches(run, children, { origin, repeats });
  yield* recountOutcomes(store, run.id);
  const made: Batch[] = [];
  for (const child of children) made.push(yield* mustFindBatch(operationIdOf(run, child)));
  return made;
}

/** For use inside a write: recounts the points by the responses to the leaves. */
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

/** For use inside a write: recounts the points by the outcomes of the leaves. */
export function* recountOutcomes(store: Store, runId: string): Steps<void> {
  const leaves = (yield* batchesOf(runId)).filter((batch) => batch.state !== "split");
  const outcomes = leaves.flatMap((batch) => (batch.outcome === null ? [] : [batch.outcome]));
  const stored = outcomes.reduce((sum, outcome) => sum + outcome.stored, 0);
  const discarded = outcomes.flatMap((outcome) => outcome.discarded).reduce((sum, target) => sum + target.points, 0);
  yield* execute(
    "UPDATE runs SET stored = ?, discarded = ?, changed_at = ? WHERE id = ?",
    stored,
    discarded,
    store.now(),
    runId,
  );
}
