import type { Arrival } from "../../model.ts";
import { execute, type Steps } from "./store.ts";

/**
 * Separates the path of a container from that of an entry. The name of a file at a drop may contain it as
 * well.
 */
const ENTRY_MARK = "!/";

/**
 * For use inside a write: an entry has changed, so its container is checked again when it had come to rest.
 */
export function* reopenContainer(arrivalId: number, path: Arrival["path"]): Steps<void> {
  if (!path.includes(ENTRY_MARK)) return;
  yield* execute(
    `UPDATE runs SET settled = 0 WHERE state = 'opened' AND settled = 1 AND finished_at IS NULL
      AND id = (SELECT container.run_id FROM arrivals AS entry
        JOIN arrivals AS container ON container.id = entry.parent_id WHERE entry.id = ?)`,
    arrivalId,
  );
}
