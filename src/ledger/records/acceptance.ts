/** A batch is accepted, and with the last one its run, in the same transaction. */
import type { BatchState, Run } from "../../model.ts";
import type { Ledger, WholeRun } from "../ledger.ts";
import { assertState, missingBatch } from "./batches.ts";
import { appendEvent } from "./events.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { advance, applyChange } from "./runs.ts";
import { execute, row, type Steps, type Store } from "./store.ts";

export function acceptanceMethods(store: Store): Pick<Ledger, "acceptBatch"> {
  return {
    acceptBatch: (operationId, answer, whole) =>
      store.write(["batch.accepted", "run.accepted"], () => acceptBatch(store, operationId, answer, whole)),
  };
}

/** A run with one of its batches, and what its other leaves came to. */
interface RunOfBatch extends RunRow {
  readonly batch_state: BatchState;
  readonly batch_points: number;
  readonly others_accepted: number;
  readonly others_rejected: number;
  /** Of these others, how many are not accepted. */
  readonly others_left: number;
}

const OTHERS =
  "FROM batches AS other WHERE other.run_id = runs.id AND other.operation_id <> batches.operation_id";

const SELECT_RUN_OF_BATCH = `${SELECT_RUN.replace(
  "SELECT runs.*,",
  `SELECT runs.*, batches.state AS batch_state, batches.points AS batch_points,
    (SELECT coalesce(sum(other.points), 0) ${OTHERS} AND other.state = 'accepted') AS others_accepted,
    (SELECT coalesce(sum(other.points), 0) ${OTHERS} AND other.state = 'rejected') AS others_rejected,
    (SELECT count(*) ${OTHERS} AND other.state IN ('ready', 'sending', 'rejected')) AS others_left,`,
)} JOIN batches ON batches.run_id = runs.id WHERE batches.operation_id = ?`;

function* acceptBatch(
  store: Store,
  operationId: string,
  answer: string,
  { service, finishPlan }: WholeRun,
): Steps<Run | null> {
  const found = yield* row<RunOfBatch>(SELECT_RUN_OF_BATCH, operationId);
  if (found === undefined) throw missingBatch(operationId);
  const run = toRun(found);
  yield* store.assertRun(run.id);
  assertState({ operationId, state: found.batch_state }, "sending");
  yield* execute(
    "UPDATE batches SET state = 'accepted', answer = ?, accepted_at = coalesce(accepted_at, ?) WHERE operation_id = ?",
    answer,
    store.now(),
    operationId,
  );
  const { arrivalId } = run;
  yield* appendEvent(
    store,
    { arrivalId, runId: run.id, operationId, what: "batch.accepted", detail: answer },
    run,
  );
  const accepted = found.others_accepted + found.batch_points;
  const points = { accepted, rejected: found.refused + found.others_rejected };
  if (run.state !== "delivering" || found.others_left > 0) {
    yield* applyChange(store, run, run.state, { points }, {});
    return null;
  }
  return yield* advance(store, run, "delivering", "accepted", {
    points,
    reason: null,
    detail: `${accepted} points accepted by ${service}`,
    ...(finishPlan === undefined || run.finishPlan !== null ? {} : { finishPlan }),
  });
}
