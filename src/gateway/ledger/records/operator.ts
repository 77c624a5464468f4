/** Commands and queries of operators: pauses, and files that need attention. */
import { basename } from "node:path/posix";
import { cells, change, execute, rows, type Steps } from "#core/sql/statements.ts";
import type { Arrival, IsoInstant, Pause, Run, RunState } from "../../model.ts";
import { ACCEPTED_STATES, SENT_STATES } from "../../states.ts";
import type { DropNotice, Ledger, RestingRun, TargetKey } from "../ledger.ts";
import { findArrival } from "./arrivals.ts";
import { digestOf } from "./lanes.ts";
import { type ArrivalRow, type RunCells, SELECT_RUN, toArrival, toRun } from "./rows.ts";
import { literals } from "./run-indexes.ts";
import { runsIn } from "./run-lists.ts";
import { findRun } from "./runs.ts";
import type { Store } from "./store.ts";

type OperatorMethods = Pick<
  Ledger,
  | "restingIn"
  | "arrivalsAt"
  | "pauses"
  | "pause"
  | "resume"
  | "laterRuns"
  | "laterDeliverers"
  | "acceptedSince"
  | "noticesSince"
>;

export function operatorMethods(store: Store): OperatorMethods {
  return {
    restingIn: (states, limit) => store.read(() => restingIn(store, states, limit)),
    arrivalsAt: (path, drop) => store.look(() => arrivalsAt(path, drop)),
    pauses: () => store.look(() => rows<Pause>("SELECT kind, name, at, by, why FROM pauses ORDER BY kind, name")),
    pause: (pause) => store.write("pause.changed", () => setPause(store, pause)),
    resume: (kind, name) =>
      store.write("pause.changed", function* () {
        return (yield* change("DELETE FROM pauses WHERE kind = ? AND name = ?", kind, name)) > 0;
      }),
    laterRuns: (run, targets, before) => store.read(() => laterRuns(run, targets, before)),
    laterDeliverers: (run, limit) => store.look(() => laterDeliverers(store, run, limit)),
    acceptedSince: (run, at, limit) => store.look(() => acceptedSince(store, run, at, limit)),
    noticesSince: (at) => store.look(() => noticesSince(at)),
  };
}

function* restingIn(store: Store, states: readonly RunState[], limit: number): Steps<readonly RestingRun[]> {
  const resting: RestingRun[] = [];
  for (const run of yield* runsIn(store, states, { limit, newestFirst: true, latest: true })) {
    const arrival = yield* findArrival(run.arrivalId);
    if (arrival !== null) resting.push({ run, arrival });
  }
  return resting;
}

function* arrivalsAt(path: string, drop: string | undefined): Steps<readonly Arrival[]> {
  const found = yield* rows<ArrivalRow>(
    `SELECT * FROM arrivals WHERE name = ? AND path = ? ${drop === undefined ? "" : "AND drop_name = ?"}
      AND parent_id IS NULL ORDER BY id`,
    basename(path),
    path,
    ...(drop === undefined ? [] : [drop]),
  );
  return found.map(toArrival);
}

function* setPause(store: Store, pause: Omit<Pause, "at">): Steps<Pause> {
  const at = store.now();
  yield* execute(
    `INSERT INTO pauses (kind, name, at, by, why) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (kind, name) DO UPDATE SET at = excluded.at, by = excluded.by, why = excluded.why`,
    pause.kind,
    pause.name,
    at,
    pause.by,
    pause.why,
  );
  return { ...pause, at };
}

/** By the digests of targets; an equal digest of unequal targets only costs a comparison. */
function* laterRuns(run: Run, targets: readonly TargetKey[], before: string): Steps<readonly Run[]> {
  const ids = new Set<string>();
  for (const target of targets)
    for (const { id } of yield* rows<{ id: string }>(
      "SELECT run_id AS id FROM run_targets WHERE digest = ? AND run_id > ? AND run_id < ?",
      digestOf(target),
      run.id,
      before,
    ))
      ids.add(id);
  const later: Run[] = [];
  for (const id of [...ids].sort()) {
    const found = yield* findRun(id);
    if (found === null || !ACCEPTED_STATES.includes(found.state) || found.arrivalId === run.arrivalId) continue;
    if (found.binding.service === run.binding.service) later.push(found);
  }
  return later;
}

/** From the few runs that are younger, or from their targets, whichever set the planner estimates smaller. */
export function* laterDeliverers(
  { dialect }: Store,
  run: Run,
  limit: number,
  states: readonly RunState[] = SENT_STATES,
): Steps<readonly Run[]> {
  const found = yield* cells<RunCells>(
    `${SELECT_RUN} WHERE runs.id > ? AND runs.arrival_id <> ?
      AND runs.state IN (${literals(states)})
      AND ${dialect.jsonField("bindings.json", "service")} = ?
      AND runs.id IN (SELECT other.run_id FROM run_targets AS own JOIN run_targets AS other ON other.digest = own.digest
        WHERE own.run_id = ? AND other.run_id > ?)
    ORDER BY runs.id LIMIT ?`,
    run.id,
    run.arrivalId,
    run.binding.service,
    run.id,
    run.id,
    limit,
  );
  return found.map(toRun);
}

function* acceptedSince({ dialect }: Store, run: Run, at: string, limit: number): Steps<readonly Run[]> {
  const found = yield* cells<RunCells>(
    `${SELECT_RUN} WHERE runs.id <> ? AND runs.accepted > 0 AND ${dialect.jsonField("bindings.json", "service")} = ?
      AND runs.id IN (
        SELECT other.run_id FROM run_targets AS own JOIN run_targets AS other ON other.digest = own.digest
WHERE own.run_id = ?
        UNION SELECT later.id FROM runs AS later JOIN runs AS own ON own.id = ?
          WHERE later.id > ? AND later.lane = own.lane
AND later.target_kinds <> '' AND later.target_kinds <> own.target_kinds)
      AND EXISTS (SELECT 1 FROM batches
        WHERE batches.run_id = runs.id AND batches.state = 'accepted' AND batches.accepted_at >= ?)
    ORDER BY runs.id DESC LIMIT ?`,
    run.id,
    run.binding.service,
    run.id,
    run.id,
    run.id,
    at,
    limit,
  );
  return found.map(toRun);
}

const SELECT_NOTICES = `SELECT 'repeated' AS kind, runs.drop_name AS "drop", count(DISTINCT runs.id) AS files,
  max(batches.repeats) AS example, max(batches.accepted_at) AS "latestAt"
  FROM batches JOIN runs ON runs.id = batches.run_id
  WHERE batches.repeats IS NOT NULL AND batches.state = 'accepted' AND batches.accepted_at >= ?
  GROUP BY runs.drop_name
UNION ALL SELECT 'replaced', arrivals.drop_name, count(DISTINCT arrivals.id), max(arrivals.path), max(events.at)
  FROM events JOIN arrivals ON arrivals.id = events.arrival_id
  WHERE events.what = 'source.changed' AND events.at >= ?
  GROUP BY arrivals.drop_name
ORDER BY 1, 2`;

function* noticesSince(at: IsoInstant): Steps<readonly DropNotice[]> {
  const found = yield* rows<DropNotice>(SELECT_NOTICES, at, at);
  return found.map((notice) => ({ ...notice, files: Number(notice.files) }));
}
