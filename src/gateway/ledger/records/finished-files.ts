import { execute, row, rows, type Steps, type Value } from "#core/sql/statements.ts";
import { type FinishPlan, finishedPlace, PLACE_EVENTS } from "../../model.ts";
import type {
  FinishedFile,
  FinishedFileChange,
  FinishedFiles,
  GrowthPause,
  NewFinishedFile,
  PlacedFile,
} from "../finished-files.ts";
import { appendEvent } from "./events.ts";
import type { Store } from "./store.ts";

/** Name of the fault points of every write about a finished file. */
const CHANGED = "finished.changed";

const SUPERSEDED = `SELECT * FROM finished_files WHERE drop_name = ? AND place = path AND EXISTS (SELECT 1 FROM arrivals
  WHERE arrivals.drop_name = finished_files.drop_name AND arrivals.path = finished_files.path
    AND arrivals.gone_at IS NULL AND arrivals.parent_id IS NULL AND arrivals.id > finished_files.arrival_id)`;

const OCCUPIED = `SELECT * FROM finished_files WHERE occupied_since IS NOT NULL ORDER BY drop_name, place
  LIMIT 1000`;

const PLACED = `SELECT arrivals.id, arrivals.path, events.what, events.detail FROM arrivals
  LEFT JOIN events ON events.id = (SELECT max(own.id) FROM events AS own
    WHERE own.arrival_id = arrivals.id AND own.what IN (${PLACE_EVENTS.map((what) => `'${what}'`).join(", ")}))
  WHERE arrivals.drop_name = ? AND arrivals.id > ? AND arrivals.parent_id IS NULL ORDER BY arrivals.id LIMIT ?`;

type Watched = NewFinishedFile &
  Pick<FinishedFile, "drop" | "path" | "arrivalId" | "runId" | "size" | "mtime" | "sha256">;

export function finishedFiles(store: Store): FinishedFiles {
  return {
    watch: (file, event) =>
      store.write(CHANGED, function* () {
        yield* store.assertDrop(file.drop, store.session);
        yield* watchFile(store, { ...file, runId: null, sha256: null });
        if (file.place !== file.path) yield* leavePath(store, file.arrivalId);
        yield* appendKnown(store, { ...file, runId: null }, event);
      }),
    due: (drop, by, limit) =>
      store.look(function* () {
        const superseded = yield* rows<FinishedRow>(SUPERSEDED, drop);
        const found = yield* rows<FinishedRow>(
          "SELECT * FROM finished_files WHERE drop_name = ? AND look_at <= ? ORDER BY look_at LIMIT ?",
          drop,
          by,
          limit,
        );
        const places = new Set(superseded.map(({ place }) => place));
        return [...superseded, ...found.filter(({ place }) => !places.has(place))].map(toFinishedFile);
      }),
    of: (arrivalId) =>
      store.look(function* () {
        const found = yield* row<FinishedRow>("SELECT * FROM finished_files WHERE arrival_id = ?", arrivalId);
        return found === undefined ? null : toFinishedFile(found);
      }),
    placed: (drop, after, limit) => store.look(() => placed(drop, after, limit)),
    occupied: () =>
      store.look(function* () {
        const found = yield* rows<FinishedRow>(OCCUPIED);
        return found.map(toFinishedFile);
      }),
    change: (file, wanted) => store.write(CHANGED, () => changeFile(store, file, wanted)),
    postpone: (drop, checks) => store.write(CHANGED, () => postpone(store, drop, checks)),
    archives: async (drop, folders = []) => {
      const known = await store.look(() => archivesOf(drop));
      const unknown = folders.filter((folder) => !known.includes(folder));
      if (unknown.length === 0) return known;
      await store.write("poll.recorded", () => addArchives(store, drop, unknown));
      return [...known, ...unknown];
    },
    noteGrowthPause: async (drop, path, pauseMs) => {
      const known = await store.look(() => growthPause(drop));
      if (known === null || pauseMs > known.pauseMs)
        await store.write(CHANGED, () => noteGrowthPause(store, drop, path, pauseMs));
    },
    growthPause: (drop) => store.look(() => growthPause(drop)),
  };
}

/** For use inside a write. The same file may be recorded again after a crash. */
export function* watchFile(store: Store, file: Watched): Steps<void> {
  yield* execute("DELETE FROM finished_files WHERE drop_name = ? AND place = ?", file.drop, file.place);
  yield* execute(
    `INSERT INTO finished_files
      (drop_name, place, path, arrival_id, run_id, size, mtime, identity, sha256, plan, begun_at, ends_at, look_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    file.drop,
    file.place,
    file.path,
    file.arrivalId,
    file.runId,
    file.size,
    file.mtime,
    file.identity,
    file.sha256,
    JSON.stringify(file.plan),
    store.now(),
    file.endsAt,
    file.checkAt,
  );
}

/**
 * For use inside a write. Records a pause that is longer than the known one; a shorter pause is not written.
 */
export function* noteGrowthPause(store: Store, drop: string, path: string, pauseMs: number): Steps<void> {
  yield* execute(
    `INSERT INTO growth_pauses (drop_name, path, pause_ms, at) VALUES (?, ?, ?, ?)
      ON CONFLICT (drop_name) DO UPDATE SET path = excluded.path, pause_ms = excluded.pause_ms, at = excluded.at
      WHERE excluded.pause_ms > growth_pauses.pause_ms`,
    drop,
    path,
    Math.round(pauseMs),
    store.now(),
  );
}

function* placed(drop: string, after: number, limit: number) {
  type Row = { id: number; path: string; what: string | null; detail: string | null };
  const found = yield* rows<Row>(PLACED, drop, after, limit);
  const files = found.flatMap(({ id, path, what, detail }): readonly PlacedFile[] => {
    const place = what === null || detail === null ? null : finishedPlace(path, [{ what, detail }]);
    return place === null ? [] : [{ arrivalId: id, path, place }];
  });
  return { files, next: found.length < limit ? null : (found.at(-1)?.id ?? null) };
}

interface FinishedRow {
  readonly drop_name: string;
  readonly place: string;
  readonly path: string;
  readonly arrival_id: number;
  readonly run_id: string | null;
  readonly size: number;
  readonly mtime: string;
  readonly identity: string | null;
  readonly sha256: string | null;
  readonly plan: string;
  readonly changed: number;
  readonly occupied_since: string | null;
  readonly begun_at: string;
  readonly ends_at: string;
  readonly look_at: string;
}

function toFinishedFile(found: FinishedRow): FinishedFile {
  const { place, path, size, mtime, identity, sha256 } = found;
  return {
    ...{ place, path, size, mtime, identity, sha256 },
    drop: found.drop_name,
    arrivalId: found.arrival_id,
    runId: found.run_id,
    plan: JSON.parse(found.plan) as FinishPlan,
    changed: found.changed === 1,
    occupiedSince: found.occupied_since,
    begunAt: found.begun_at,
    endsAt: found.ends_at,
    checkAt: found.look_at,
  };
}

function* changeFile(store: Store, file: FinishedFile, wanted: FinishedFileChange): Steps<void> {
  yield* store.assertDrop(file.drop, store.session);
  if (wanted.ended === true)
    yield* execute("DELETE FROM finished_files WHERE drop_name = ? AND place = ?", file.drop, file.place);
  else yield* updateFile(file, wanted);
  if (wanted.left === true) yield* leavePath(store, file.arrivalId);
  if (wanted.event !== undefined) yield* appendKnown(store, file, wanted.event);
}

/** For use inside a write: the file is no longer at its path. */
function leavePath(store: Store, arrivalId: number): Steps<void> {
  const sql = "UPDATE arrivals SET gone_at = coalesce(gone_at, ?) WHERE id = ?";
  return execute(sql, store.now(), arrivalId);
}

function* updateFile(file: FinishedFile, wanted: FinishedFileChange): Steps<void> {
  const { place, size, mtime, identity, endsAt, checkAt, plan } = wanted;
  const written: Record<string, Value | undefined> = {
    ...{ place, size, mtime, identity },
    plan: plan === undefined ? undefined : JSON.stringify(plan),
    changed: wanted.changed === undefined ? undefined : Number(wanted.changed),
    occupied_since: wanted.occupiedSince,
    ends_at: endsAt,
    look_at: checkAt,
  };
  const cells = Object.entries(written).filter((cell): cell is [string, Value] => cell[1] !== undefined);
  if (cells.length === 0) return;
  const set = cells.map(([name]) => `${name} = ?`).join(", ");
  const values = cells.map(([, value]) => value);
  yield* execute(
    `UPDATE finished_files SET ${set} WHERE drop_name = ? AND place = ?`,
    ...values,
    file.drop,
    file.place,
  );
}

function* postpone(
  store: Store,
  drop: string,
  checks: readonly Pick<FinishedFile, "place" | "identity" | "checkAt">[],
): Steps<void> {
  yield* store.assertDrop(drop, store.session);
  for (const { place, identity, checkAt } of checks)
    yield* execute(
      "UPDATE finished_files SET look_at = ?, identity = ? WHERE drop_name = ? AND place = ?",
      checkAt,
      identity,
      drop,
      place,
    );
}

/** The ledger may have forgotten the arrival since. */
function* appendKnown(
  store: Store,
  { arrivalId, runId, drop, path }: Pick<FinishedFile, "arrivalId" | "runId" | "drop" | "path">,
  { what, detail }: { readonly what: string; readonly detail: string },
): Steps<void> {
  const known = yield* row("SELECT 1 AS known FROM arrivals WHERE id = ?", arrivalId);
  if (known !== undefined)
    yield* appendEvent(store, { arrivalId, runId, operationId: null, what, detail }, { drop, path });
}

function* archivesOf(drop: string): Steps<readonly string[]> {
  const found = yield* rows<{ folder: string }>("SELECT folder FROM archive_places WHERE drop_name = ?", drop);
  return found.map(({ folder }) => folder);
}

function* addArchives(store: Store, drop: string, folders: readonly string[]): Steps<void> {
  for (const folder of folders)
    yield* execute(
      "INSERT INTO archive_places (drop_name, folder, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      drop,
      folder,
      store.now(),
    );
}

function* growthPause(drop: string): Steps<GrowthPause | null> {
  const found = yield* row<{ path: string; pause_ms: number; at: string }>(
    "SELECT path, pause_ms, at FROM growth_pauses WHERE drop_name = ?",
    drop,
  );
  return found === undefined ? null : { path: found.path, pauseMs: found.pause_ms, at: found.at };
}
