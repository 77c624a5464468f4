/** The event of a calculation that is over. */
import { row, type Steps } from "../database.ts";
import { addEvents } from "../events/events.ts";
import { calculationOfRow } from "./calculation-rows.ts";

/** For use inside the write that ends it; adds nothing while the calculation is open. */
export function* addCalculationEvent(id: number, nowMs: number): Steps<void> {
  const found = yield* row(
    `SELECT calculation.*, variable.name, variable.source_id, source.site_id FROM calculation
      JOIN variable ON variable.id = calculation.variable_id JOIN source ON source.id = variable.source_id
      WHERE calculation.id = ? AND calculation.state IN ('done', 'failed')`,
    id,
  );
  if (found === undefined) return;
  const { accountId, variableId, state, message, defaultVersion, ...counts } = calculationOfRow(found);
  const isFailure = state === "failed";
  const { outputs, stored, replaced, discarded } = counts;
  yield* addEvents([
    {
      accountId,
      type: isFailure ? "calculation.failed" : "calculation.recalculated",
      subject: { kind: "variable", id: variableId, name: String(found["name"]) },
      atMs: nowMs,
      state,
      isFailure,
      siteId: Number(found["site_id"]),
      sourceId: Number(found["source_id"]),
      variableId,
      facts: { calculationId: id, defaultVersion, outputs, stored, replaced, discarded, message },
    },
  ]);
}
