/** Accepts a batch, and with the last one its run, in the same transaction. */

import type { BatchState, Run } from "../../model.ts";
import { NOT_ACCEPTED_STATES } from "../../states.ts";
import { counted } from "../../support/grouped-number.ts";
import type { Ledger, WholeRun } from "../ledger.ts";
import { assertTransition } from "../transitions.ts";
import { assertState, missingBatch } from "./batches.ts";
import { appendEvent, appendEvents } from "./events.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, toRunRow } from "./rows.ts";
import { literals } from "./run-indexes.ts";
import { applyChange, eventOf } from "./runs.ts";
import { cells, execute, type Steps, type Store } from "./store.ts";

export function acceptanceMethods(store: Store): Pick<Ledger, "acceptBatch"> {
  return {
    acceptBatch: (operationId, answer, whole) =>
      store.write(["batch.accepted", "run.accepted"], () => acceptBatch(store, operationId, answer, whole)),
  };
}

/** The columns behind the cells of the run: one of its batches, and how many it has. */
type BatchCells = readonly [state: BatchState, points: number, batches: number];

const SELECT_RUN_OF_BATCH = `SELECT ${RUN_COLUMNS}, batches.state, batches.points,
    (SELECT count(*) FROM batches AS one WHERE one.run_id = runs.id)
  FROM batches JOIN runs ON runs.id = batches.run_id JOIN bindings ON bindings.id = runs.binding_id
WHERE batches.operation_id = ?`;

/** The results of the other leaves of a run. */
type OthersCells = readonly [accepted: number, rejected: number, left: number];

const SELECT_OTHERS = `SELECT coalesce(sum(CASE WHEN state = 'accepted' THEN points END), 0),
    coalesce(sum(CASE WHEN state = 'rejected' THEN points END), 0),
    coalesce(sum(CASE WHEN state IN (${literals(NOT_ACCEPTED_STATES)}) THEN 1 END), 0)
  FROM batches WHERE run_id = ? AND operation_id <> ?`;

const ALONE: OthersCells = [0, 0, 0];

function* acceptBatch(
  store: Store,
  operationId: string,
  answer: string,
  { service, finishPlan }: WholeRun,
): Steps<Run | null> {
  const [found] = yield* cells<RunCells>(SELECT_RUN_OF_BATCH, operationId);
  if (found === undefined) throw missingBatch(operationId);
  const { run, refused } = toRunRow(found);
  const [state, own, count] = found.slice(RUN_CELLS) as unknown as BatchCells;
  yield* store.assertRun(run.id);
  assertState({ operationId, state }, "sending");
  const [others = ALONE] = count === 1 ? [] : yield* cells<OthersCells>(SELECT_OTHERS, run.id, operationId);
  const [acceptedBefore, rejected, left] = others;
  yield* execute(
    "UPDATE batches SET state = 'accepted', answer = ?, accepted_at = coalesce(accepted_at, ?) WHERE operation_id = ?",
    answer,
    store.now(),
    operationId,
  );
  const batchAccepted = { ...eventOf(run, "batch.accepted", answer), operationId };
  const accepted = acceptedBefore + own;
  const points = { accepted, rejected: refused + rejected };
  if (run.state !== "delivering" || left > 0) {
    yield* applyChange(store, run, run.state, { points }, {});
    yield* appendEvent(store, batchAccepted, run);
    return null;
  }
  assertTransition("run", run.id, run.state, "accepted");
  const plan = finishPlan === undefined || run.finishPlan !== null ? {} : { finishPlan };
  const after = yield* applyChange(store, run, "accepted", { points, reason: null, ...plan }, {});
  const runAccepted = eventOf(run, "run.accepted", `${counted(accepted, "point")} accepted by ${service}`);
  yield* appendEvents(store, [batchAccepted, runAccepted], run);
  return after;
}
