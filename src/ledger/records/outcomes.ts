/** What became of operations. It may be told before the answer to the push was journalled, several times, and in any order. */
import type { Outcome, Run } from "../../model.ts";
import type { Ledger } from "../ledger.ts";
import { findBatch, recountOutcomes } from "./batches.ts";
import { appendEvent } from "./events.ts";
import { findRun, mustFindRun } from "./runs.ts";
import { execute, type Steps, type Store } from "./store.ts";

export function outcomeMethods(store: Store): Pick<Ledger, "runOfOperation" | "recordOutcome"> {
  return {
    runOfOperation: (operationId) => store.look(() => runOfOperation(operationId)),
    recordOutcome: (outcome) => store.write("outcome.recorded", () => recordOutcome(store, outcome)),
  };
}

function* runOfOperation(operationId: string): Steps<Run | null> {
  const batch = yield* findBatch(operationId);
  return batch === null ? null : yield* findRun(batch.runId);
}

/** The first word stands, except that the service's own word replaces what reading back had found. */
function* recordOutcome(store: Store, outcome: Outcome): Steps<string | null> {
  const batch = yield* findBatch(outcome.operationId);
  if (batch === null) return null;
  const known = batch.outcome;
  if (known !== null && !(known.by === "read-back" && outcome.by === "webhook")) return batch.runId;
  yield* execute(
    "UPDATE batches SET outcome = ? WHERE operation_id = ?",
    JSON.stringify(outcome),
    outcome.operationId,
  );
  yield* execute("UPDATE runs SET settled = 0 WHERE id = ?", batch.runId);
  yield* recountOutcomes(store, batch.runId);
  yield* appendEvent(store, {
    arrivalId: (yield* mustFindRun(batch.runId)).arrivalId,
    runId: batch.runId,
    operationId: outcome.operationId,
    what: `outcome.${outcome.by}`,
    detail: outcomeWords(outcome),
  });
  return batch.runId;
}

function outcomeWords(outcome: Outcome): string {
  const dropped = outcome.discarded.map(
    ({ target, reason, points }) => `${points} of ${target} discarded: ${reason}`,
  );
  return [`${outcome.stored} of ${outcome.received} stored`, ...dropped].join("; ");
}
