import { execute, type Steps } from "./store.ts";

/** Inside a write: an entry has changed, so its container, which had come to rest with it, is to be looked at again. */
export function* reopenContainer(arrivalId: number): Steps<void> {
  yield* execute(
    `UPDATE runs SET settled = 0 WHERE state = 'opened' AND settled = 1 AND finished_at IS NULL
      AND id = (SELECT container.run_id FROM arrivals AS entry
        JOIN arrivals AS container ON container.id = entry.parent_id WHERE entry.id = ?)`,
    arrivalId,
  );
}
