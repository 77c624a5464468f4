/**
 * Outcomes of operations. They may arrive before the response to the push was recorded, several times, and in
 * any order.
 */
import type { Outcome, Run } from "../../model.ts";
import type { Ledger } from "../ledger.ts";
import { findBatch, recountOutcomes } from "./batches.ts";
import { appendEvent } from "./events.ts";
import { findRun, mustFindRun } from "./runs.ts";
import { execute, row, type Steps, type Store } from "./store.ts";

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

/**
 * `counts` decides whether the outcome is recorded; an outcome that does not count is still an event, unless
 * it is a repetition.
 */
function* recordOutcome(store: Store, outcome: Outcome): Steps<string | null> {
  const batch = yield* findBatch(outcome.operationId);
  if (batch === null) return null;
  const known = batch.outcome;
  const note = function* (detail: string): Steps<void> {
    yield* appendEvent(store, {
      arrivalId: (yield* mustFindRun(batch.runId)).arrivalId,
      runId: batch.runId,
      operationId: outcome.operationId,
      what: `outcome.${outcome.by}`,
      detail,
    });
  };
  if (known !== null && !counts(outcome, known)) {
    const isNews = outcome.by === "webhook" && outcome.at < known.at && !(yield* wasReportedBefore(outcome));
    if (isNews) yield* note(`${outcomeWords(outcome)}; of ${outcome.at}, so that the newer one of ${known.at} stands`);
    return batch.runId;
  }
  yield* execute("UPDATE batches SET outcome = ? WHERE operation_id = ?", JSON.stringify(outcome), outcome.operationId);
  yield* execute("UPDATE runs SET settled = 0 WHERE id = ?", batch.runId);
  yield* recountOutcomes(store, batch.runId);
  yield* note(outcomeWords(outcome));
  return batch.runId;
}

/**
 * The newest counts by its time, whatever the order of arrival: a service that applies a failed operation
 * again reports another outcome of it. The service's own report overrides the finding of a read-back, unless
 * the read-back is newer and found everything.
 */
function counts(newer: Outcome, known: Outcome): boolean {
  if (newer.by === known.by) return newer.at > known.at;
  const [own, read] = newer.by === "webhook" ? [newer, known] : [known, newer];
  const isProven = read.discarded.length === 0 && read.stored === read.received && read.at > own.at;
  return (newer === read) === isProven;
}

/** The same outcome was reported before, and stood until a newer one came, or did not count even then. */
function* wasReportedBefore(outcome: Outcome): Steps<boolean> {
  const found = yield* row<{ n: number }>(
    `SELECT count(*) AS n FROM events
      WHERE arrival_id = (
  SELECT runs.arrival_id FROM runs JOIN batches ON batches.run_id = runs.id WHERE batches.operation_id = ?)
        AND operation_id = ? AND what = ? AND (detail = ? OR detail LIKE ?)`,
    outcome.operationId,
    outcome.operationId,
    `outcome.${outcome.by}`,
    outcomeWords(outcome),
    `%; of ${outcome.at}, so that %`,
  );
  return (found?.n ?? 0) > 0;
}

function outcomeWords(outcome: Outcome): string {
  const dropped = outcome.discarded.map(({ target, reason, points }) => `${points} of ${target} discarded: ${reason}`);
  return [`${outcome.stored} of ${outcome.received} stored`, ...dropped].join("; ");
}
