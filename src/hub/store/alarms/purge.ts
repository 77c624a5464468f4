/** Removes old changes of alarms, but never the newest of an alarm, by which its state is known. */
import { change, type Database, row } from "../database.ts";
import { inSteps, PURGE_ROWS } from "../queue.ts";

/** Ids are in the order of recording, up to moments. */
const FIRST_KEPT = "SELECT id FROM alarm_change WHERE recorded_ms >= ? ORDER BY id LIMIT 1";
const FORGET = `DELETE FROM alarm_change WHERE id IN (SELECT old.id FROM alarm_change AS old
  WHERE old.id < ? AND EXISTS (SELECT 1 FROM alarm_change AS newer
    WHERE newer.alarm_id = old.alarm_id AND newer.id > old.id)
  ORDER BY old.id LIMIT ${PURGE_ROWS})`;

export async function purgeChanges(database: Database, beforeMs: number): Promise<void> {
  const kept = await database.ask(() => row(FIRST_KEPT, beforeMs));
  const end = kept === undefined ? Number.MAX_SAFE_INTEGER : Number(kept["id"]);
  await inSteps(database, () => change(FORGET, end));
}
