import type { Arrival } from "../../model.ts";
import { execute, type Steps } from "./store.ts";

/** Between the path of a container and that of an entry. A file at a drop may be called so as well. */
const ENTRY_MARK = "!/";

/** Inside a write: an entry has changed, so its container, which had come to rest with it, is to be looked at again. */
export function* reopenContainer(arrivalId: number, path: Arrival["path"]): Steps<void> {
  if (!path.includes(ENTRY_MARK)) return;
  yield* execute(
    `UPDATE runs SET settled = 0 WHERE state = 'opened' AND settled = 1 AND finished_at IS NULL
      AND id = (SELECT container.run_id FROM arrivals AS entry
        JOIN arrivals AS container ON container.id = entry.parent_id WHERE entry.id = ?)`,
    arrivalId,
  );
}
