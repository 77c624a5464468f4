/**
 * The lanes that a container feeds. Its entries take its place in the order of arrivals, so that later runs
 * of these lanes wait until each entry has a run, or needs none. The rows of a container are deleted with its
 * last entry that is matched, or with the container itself.
 */

import { entryRunId } from "#core/run-id.ts";
import { execute, executeEach, row, type Steps } from "#core/sql/statements.ts";
import type { Arrival } from "../../model.ts";

/** For use inside a write. */
export function addContainerLanes(runId: string, lanes: readonly string[]): Steps<void> {
  return executeEach(
    "INSERT INTO container_lanes (lane, run_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
    ["text", "text"],
    lanes.map((lane) => [lane, runId]),
  );
}

/** For use inside a write: the run of a container has ended without being opened. */
export function removeContainerLanes(runId: string): Steps<void> {
  return execute("DELETE FROM container_lanes WHERE run_id = ?", runId);
}

/** For use inside a write, after an entry of this container was matched, or the container was opened. */
export function releaseContainerLanes(containerId: number): Steps<void> {
  return execute(
    `DELETE FROM container_lanes WHERE run_id = (SELECT run_id FROM arrivals WHERE id = ?)
      AND NOT EXISTS (SELECT 1 FROM arrivals AS entry
        WHERE entry.parent_id IS NOT NULL AND entry.state = 'settling' AND entry.parent_id = ?)`,
    containerId,
    containerId,
  );
}

/**
 * The id for the first run of an entry, by which it has the place of its container; null for an arrival that
 * is not an entry, and for an entry that is matched late, such as after a change of the triggers: later files
 * may be delivered by then.
 */
export function* placedRunId({ id, parentId, state }: Arrival): Steps<string | null> {
  if (parentId === null || state !== "settling") return null;
  const found = yield* row<{ own: string | null; container: string | null }>(
    `SELECT entry.run_id AS own, container.run_id AS container
      FROM arrivals AS entry JOIN arrivals AS container ON container.id = entry.parent_id WHERE entry.id = ?`,
    id,
  );
  if (found === undefined || found.own !== null || found.container === null) return null;
  return entryRunId(found.container, id - parentId);
}
