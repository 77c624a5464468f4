/** Rows that the mapper or the service refused, for the report of a run. */
import type { RejectedRow } from "../../model.ts";
import { executeEach, rows, type Steps } from "./store.ts";

/** For use inside a write. */
export function addRejectedRows(runId: string, rejected: readonly RejectedRow[]): Steps<void> {
  return executeEach(
    "INSERT INTO rejected_rows (run_id, json) VALUES (?, ?)",
    ["text", "text"],
    rejected.map((one) => [runId, JSON.stringify(one)]),
  );
}

export function* rejectedRowsOf(runId: string): Steps<readonly RejectedRow[]> {
  const found = yield* rows<{ json: string }>("SELECT json FROM rejected_rows WHERE run_id = ? ORDER BY id", runId);
  return found.map(({ json }) => JSON.parse(json) as RejectedRow);
}
