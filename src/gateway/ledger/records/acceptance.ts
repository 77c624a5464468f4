/** Accepts a batch, and with the last one its run, in the same transaction. */

import { counted } from "#core/grouped-number.ts";
import type { BatchState, Run } from "../../model.ts";
import { NOT_ACCEPTED_STATES } from "../../states.ts";
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
    acceptBatch: (operationId, answer, whole, repeats) =>
      store.write(["batch.accepted", "run.accepted"], () =>
        acceptBatch(store, operationId, { answer, repeats }, whole),
      ),
  };
}

/** The columns behind the cells of the run: one of its batches, and whether it has others. */
type BatchCells = readonly [state: BatchState, points: number, hasOthers: number];

const SELECT_RUN_OF_BATCH = `SELECT ${RUN_COLUMNS}, batches.state, batches.points,
    CASE WHEN EXISTS (SELECT 1 FROM batches AS other
      WHERE other.run_id = runs.id AND other.operation_id <> batches.operation_id) THEN 1 ELSE 0 END
  FROM batches JOIN runs ON runs.id = batches.run_id JOIN bindings ON bindings.id = runs.binding_id
WHERE batches.operation_id = ?`;

/** Batches are sent in their order, so that one that is left is found at the end, without reading all before it. */
const SELECT_LEFT = `SELECT 1 FROM batches
  WHERE run_id = ? AND operation_id <> ? AND state IN (${literals(NOT_ACCEPTED_STATES)})
  ORDER BY place DESC LIMIT 1`;

/** The points of the other leaves of a run, and one of the earlier operations that delivered some of them. */
type OthersCells = readonly [accepted: number, rejected: number, repeated: number, repeats: string | null];

const SELECT_OTHERS = `SELECT coalesce(sum(CASE WHEN state = 'accepted' THEN points END), 0),
    coalesce(sum(CASE WHEN state = 'rejected' THEN points END), 0),
    coalesce(sum(CASE WHEN state = 'accepted' AND repeats IS NOT NULL THEN points END), 0),
    min(CASE WHEN state = 'accepted' THEN repeats END)
  FROM batches WHERE run_id = ? AND operation_id <> ?`;

const ALONE: OthersCells = [0, 0, 0, null];

function* acceptBatch(
  store: Store,
  operationId: string,
  { answer, repeats }: { readonly answer: string; readonly repeats: string | undefined },
  { service, finishPlan }: WholeRun,
): Steps<Run | null> {
  const [found] = yield* cells<RunCells>(SELECT_RUN_OF_BATCH, operationId);
  if (found === undefined) throw missingBatch(operationId);
  const { run, refused } = toRunRow(found);
  const [state, own, hasOthers] = found.slice(RUN_CELLS) as unknown as BatchCells;
  yield* store.assertRun(run.id);
  assertState({ operationId, state }, "sending");
  const left = hasOthers === 0 ? [] : yield* cells(SELECT_LEFT, run.id, operationId);
  yield* execute(
    `UPDATE batches SET state = 'accepted', answer = ?, repeats = ?, accepted_at = coalesce(accepted_at, ?)
      WHERE operation_id = ?`,
    answer,
    repeats ?? null,
    store.now(),
    operationId,
  );
  const batchAccepted = { ...eventOf(run, "batch.accepted", answer), operationId };
  if (run.state !== "delivering" || left.length > 0) {
    // Each answer counts in its own transaction, so that the points before it are known.
    const points = { accepted: run.points.accepted + own };
    yield* applyChange(store, run, run.state, { points }, {});
    yield* appendEvent(store, batchAccepted, run);
    return null;
  }
  const [others = ALONE] = hasOthers === 0 ? [] : yield* cells<OthersCells>(SELECT_OTHERS, run.id, operationId);
  const accepted = others[0] + own;
  const points = { accepted, rejected: refused + others[1] };
  assertTransition("run", run.id, run.state, "accepted");
  const plan = finishPlan === undefined || run.finishPlan !== null ? {} : { finishPlan };
  const after = yield* applyChange(store, run, "accepted", { points, reason: null, ...plan }, {});
  const repeated = others[2] + (repeats === undefined ? 0 : own);
  const words = `${counted(accepted, "point")} accepted by ${service}${repeatedWords(repeated, repeats ?? others[3])}`;
  const runAccepted = eventOf(run, "run.accepted", words);
  yield* appendEvents(store, [batchAccepted, runAccepted], run);
  return after;
}

/** Of a run: how many of its points an earlier operation had delivered. */
function repeatedWords(points: number, repeats: string | null): string {
  if (points === 0) return "";
  const by = repeats === null || repeats === "" ? "an earlier operation" : repeats;
  return `, ${points} of which were already delivered by ${by}`;
}
