/** Removes old events: always the oldest of an account, so that readers know where theirs begin. */
import { change, type Database, row, rows, type Steps } from "../database.ts";
import { PURGE_ROWS } from "../queue.ts";

export interface EventPurge {
  /** Events before this time. */
  readonly beforeMs: number;
  /** The same for those that a webhook has still to get. */
  readonly undeliveredBeforeMs: number;
}

/** In small transactions. */
export async function purgeEvents(database: Database, times: EventPurge): Promise<void> {
  const accounts = await database.ask(() => rows("SELECT account_id FROM event_counter WHERE last > purged"));
  for (const one of accounts) {
    const accountId = Number(one["account_id"]);
    const end = await database.ask(() => firstKept(accountId, times));
    while (await database.write(() => purgeStep(accountId, end)))
      await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function* firstKept(accountId: number, { beforeMs, undeliveredBeforeMs }: EventPurge): Steps<number> {
  const since = yield* firstSince(accountId, beforeMs);
  const waiting = yield* row(
    "SELECT min(position) AS position FROM event_subscription WHERE account_id = ? AND channel = 'webhook' AND active",
    accountId,
  );
  const position = waiting?.["position"];
  if (typeof position !== "number" || position + 1 >= since) return since;
  return Math.max(position + 1, yield* firstSince(accountId, undeliveredBeforeMs));
}

/** One more than the newest where none is so young. */
function* firstSince(accountId: number, ms: number): Steps<number> {
  const sql = "SELECT id FROM event WHERE account_id = ? AND at_ms >= ? ORDER BY id LIMIT 1";
  const found = yield* row(sql, accountId, ms);
  if (found !== undefined) return Number(found["id"]);
  return Number((yield* row("SELECT last FROM event_counter WHERE account_id = ?", accountId))?.["last"] ?? 0) + 1;
}

/** False when there was nothing left to remove. */
function* purgeStep(accountId: number, end: number): Steps<boolean> {
  const counter = yield* row("SELECT purged FROM event_counter WHERE account_id = ?", accountId);
  const purged = Number(counter?.["purged"] ?? 0);
  const to = Math.min(end - 1, purged + PURGE_ROWS);
  if (to <= purged) return false;
  yield* change("DELETE FROM event WHERE account_id = ? AND id <= ?", accountId, to);
  yield* change("UPDATE event_counter SET purged = ? WHERE account_id = ? AND purged < ?", to, accountId, to);
  return true;
}
