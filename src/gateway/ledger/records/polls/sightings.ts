/** Records what a listing shows at a path, and finds the arrival of it. */
import { basename } from "node:path/posix";
import type { Arrival, FileEntry, IsoInstant } from "../../../model.ts";
import { ARRIVAL_STATES } from "../../../states.ts";
import type { Sighting } from "../../ledger.ts";
import { brokenInvariant } from "../../transitions.ts";
import { appendEvent, appendOrRenewEvent, leaveDrop } from "../events.ts";
import { noteGrowthPause } from "../finished-files.ts";
import { type ArrivalRow, toArrival } from "../rows.ts";
import { cells, row, type Steps, type Store } from "../store.ts";

/** A poll of a drop. */
export interface SightedAt {
  readonly store: Store;
  readonly drop: string;
  readonly startedAt: IsoInstant;
}

/** The arrival of an entry: a settling one, or the id of one at rest. */
export function* sight(at: SightedAt, entry: FileEntry): Steps<Sighting | number> {
  const found = yield* row<ArrivalRow>(
    "SELECT * FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL AND parent_id IS NULL",
    at.drop,
    entry.path,
  );
  if (found === undefined) return (yield* returnedId(at, entry)) ?? (yield* add(at, entry));
  if (found.size === entry.size && found.mtime === entry.mtime) return { arrival: toArrival(found), seen: "known" };
  if (ARRIVAL_STATES[found.state].isUnclaimed) return yield* change(at, found, entry);
  yield* leaveDrop(at.store, found.id, "arrival.superseded", `another version came: ${sizeWords(entry)}`);
  return yield* add(at, entry);
}

/**
 * A listing may still show a file that was finished after the listing had begun: that is the old version,
 * not a new one.
 */
function* returnedId({ drop, startedAt }: SightedAt, entry: FileEntry): Steps<number | null> {
  const last = yield* row<ArrivalRow>(
    "SELECT * FROM arrivals WHERE name = ? AND drop_name = ? AND path = ? AND parent_id IS NULL " +
      "ORDER BY id DESC LIMIT 1",
    basename(entry.path),
    drop,
    entry.path,
  );
  const same = last !== undefined && last.size === entry.size && last.mtime === entry.mtime;
  if (!same || last.gone_at === null || last.gone_at < startedAt) return null;
  return last.id;
}

function* add({ store, drop }: SightedAt, entry: FileEntry): Steps<Sighting> {
  const now = store.now();
  const { path, size, mtime } = entry;
  const state = "settling";
  const reason = "seen for the first time";
  const [added] = yield* cells<readonly [id: number]>(
    `INSERT INTO arrivals (drop_name, path, name, size, mtime, state, reason, seen_at, changed_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    drop,
    path,
    basename(path),
    size,
    mtime,
    state,
    reason,
    now,
    now,
  );
  if (added === undefined) throw brokenInvariant("record poll", path, "no row came back");
  const facts = {
    drop,
    path,
    size,
    mtime,
    state,
    reason,
    seenAt: now,
    changedAt: now,
  } as const;
  const arrival: Arrival = { ...facts, id: added[0], parentId: null, sha256: null, goneAt: null };
  const subject = { arrivalId: arrival.id, runId: null, operationId: null };
  yield* appendEvent(store, { ...subject, what: "arrival.settling", detail: sizeWords(entry) }, arrival);
  return { arrival, seen: "new" };
}

function* change({ store, drop }: SightedAt, found: ArrivalRow, entry: FileEntry): Steps<Sighting> {
  if (found.state === "settling" && entry.size > found.size) {
    const pauseMs = Date.parse(store.now()) - Date.parse(found.changed_at);
    yield* noteGrowthPause(store, drop, entry.path, pauseMs);
  }
  const reason = "its size or time has changed";
  const changed = yield* row<ArrivalRow>(
    "UPDATE arrivals SET size = ?, mtime = ?, state = 'settling', reason = ?, changed_at = ? " +
      "WHERE id = ? RETURNING *",
    entry.size,
    entry.mtime,
    reason,
    store.now(),
    found.id,
  );
  yield* appendOrRenewEvent(store, {
    arrivalId: found.id,
    runId: null,
    operationId: null,
    what: "arrival.changed",
    detail: sizeWords(entry),
  });
  return { arrival: toArrival(changed ?? found), seen: "changed" };
}

function sizeWords(entry: FileEntry): string {
  return `${entry.path}, ${entry.size} bytes, time ${entry.mtime}`;
}
