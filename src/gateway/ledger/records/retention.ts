/** Forgets arrivals that left the drops long ago, so that the ledger does not grow for ever. */
import type { IsoInstant } from "../../model.ts";
import { runStatesThat } from "../../states.ts";
import type { Ledger } from "../ledger.ts";
import { literals } from "./run-indexes.ts";
import { execute, rows, type Steps, type Store } from "./store.ts";

/** Children before parents. Each statement takes the arrival's id. */
const DELETIONS = [
  "DELETE FROM events WHERE arrival_id = ?",
  "UPDATE arrivals SET run_id = NULL WHERE id = ?",
  "DELETE FROM run_targets WHERE run_id IN (SELECT id FROM runs WHERE arrival_id = ?)",
  "DELETE FROM rejected_rows WHERE run_id IN (SELECT id FROM runs WHERE arrival_id = ?)",
  "DELETE FROM batches WHERE run_id IN (SELECT id FROM runs WHERE arrival_id = ?)",
  "DELETE FROM runs WHERE arrival_id = ?",
  "DELETE FROM arrivals WHERE id = ?",
] as const;

export function pruningMethods(store: Store): Pick<Ledger, "prune"> {
  return {
    prune: (goneBefore, limit) => store.write("arrivals.pruned", () => prune(goneBefore, limit)),
  };
}

/** For use inside a write: deletes every record of an arrival. */
export function* deleteArrival(id: number): Steps<void> {
  for (const deletion of DELETIONS) yield* execute(deletion, id);
}

/** States of runs whose outcome is unknown, or that need attention. */
const KEPT_STATES = runStatesThat(({ isOpen, needsAttention }) => isOpen || needsAttention);

/**
 * For use inside a write. An accepted run that expects outcomes is not at rest; after a replay only the
 * replay has to be good.
 */
function* prune(goneBefore: IsoInstant, limit: number): Steps<number> {
  const due = yield* rows<{ id: number }>(
    `SELECT id FROM arrivals WHERE gone_at < ?
      AND NOT EXISTS (SELECT 1 FROM arrivals AS present
        WHERE present.drop_name = arrivals.drop_name AND present.path = arrivals.path
AND present.gone_at IS NULL AND present.parent_id IS NULL)
      AND NOT EXISTS (SELECT 1 FROM arrivals AS inside
        WHERE inside.drop_name = arrivals.drop_name AND inside.path = arrivals.path
AND inside.gone_at IS NULL AND inside.parent_id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM arrivals AS entry WHERE entry.parent_id = arrivals.id)
      AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.arrival_id = arrivals.id AND (runs.finished_at IS NULL
        OR (runs.state = 'accepted' AND runs.settled = 0)
        OR (runs.state IN (${literals(KEPT_STATES)}) AND runs.id = arrivals.run_id)))
      ORDER BY gone_at LIMIT ?`,
    goneBefore,
    limit,
  );
  for (const { id } of due) yield* deleteArrival(id);
  yield* execute("DELETE FROM forgotten_files WHERE at < ?", goneBefore);
  if (due.length > 0)
    yield* execute("DELETE FROM bindings WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.binding_id = bindings.id)");
  return due.length;
}
