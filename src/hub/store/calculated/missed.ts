/**
 * Dates of outputs that a failed calculation left as they were: they are due again with the next success of their
 * variable, since nothing else would ever calculate them.
 */
import { change, insert, row, type Steps } from "../database.ts";
import type { Calculation } from "./calculation-rows.ts";

/**
 * Keeps the dates that a failed run did not hand over, or all of them where an operation could not be stored: one
 * interval a variable.
 */
export function* keepMissed(run: Calculation, hasHandedOver: boolean, nowMs: number): Steps<void> {
  const { accountId, variableId, cursorMs, beginMs, endMs } = run;
  const restMs = hasHandedOver && cursorMs !== null ? cursorMs + 1 : null;
  const before = yield* takeMissed(variableId);
  const fromMs = restMs ?? beginMs ?? run.fromMs;
  const toMs = endMs ?? run.toMs;
  yield* change(
    "INSERT INTO calculation_missed (variable_id, account_id, from_ms, to_ms, failed_ms) VALUES (?, ?, ?, ?, ?)",
    ...[variableId, accountId],
    Math.min(fromMs, before?.fromMs ?? fromMs),
    Math.max(toMs, before?.toMs ?? toMs),
    before?.failedMs ?? nowMs,
  );
}

/** Makes them due, unless the run that succeeded had calculated them. */
export function* releaseMissed({ accountId, variableId, due }: Calculation, nowMs: number): Steps<void> {
  const missed = yield* takeMissed(variableId);
  if (missed === null) return;
  const { fromMs, toMs } = missed;
  if (due.some(([inputId, dueMs, untilMs]) => inputId === null && dueMs <= fromMs && untilMs >= toMs)) return;
  yield* insert("calculation_due", {
    ...{ account_id: accountId, variable_id: variableId, input_id: null, from_ms: fromMs, to_ms: toMs },
    ...{ marked_ms: nowMs, cause: "force" },
  });
}

function* takeMissed(variableId: number) {
  const found = yield* row("SELECT * FROM calculation_missed WHERE variable_id = ?", variableId);
  if (found === undefined) return null;
  yield* change("DELETE FROM calculation_missed WHERE variable_id = ?", variableId);
  return { fromMs: Number(found["from_ms"]), toMs: Number(found["to_ms"]), failedMs: Number(found["failed_ms"]) };
}
