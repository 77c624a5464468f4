/** What operators order: pausing, forgetting, and what they have to see to. */
import { basename } from "node:path/posix";
import type { Arrival, Pause, Run, RunState } from "../../model.ts";
import { RejectedError } from "../../support/errors.ts";
import type { Forgotten, Ledger, RestingRun, TargetKey } from "../ledger.ts";
import { OPEN_RUN_STATES } from "../states.ts";
import { findArrival } from "./arrivals.ts";
import { digestOf } from "./lanes.ts";
import { deleteArrival } from "./pruning.ts";
import {
  type ArrivalRow,
  type RunCells,
  type RunRow,
  SELECT_RUN,
  toArrival,
  toRun,
  toRunRow,
} from "./rows.ts";
import { runsIn } from "./run-lists.ts";
import { findRun } from "./runs.ts";
import { cells, change, execute, row, rows, type Steps, type Store } from "./store.ts";

type OperatorMethods = Pick<
  Ledger,
  "restingIn" | "arrivalsAt" | "forget" | "pauses" | "pause" | "resume" | "laterRuns" | "overtakers"
>;

export function operatorMethods(store: Store): OperatorMethods {
  return {
    restingIn: (states, limit) => store.read(() => restingIn(store, states, limit)),
    arrivalsAt: (path, drop) => store.look(() => arrivalsAt(path, drop)),
    forget: (drop, path) => store.write("arrivals.forgotten", () => forget(drop, path)),
    pauses: () =>
      store.look(() => rows<Pause>("SELECT kind, name, at, by, why FROM pauses ORDER BY kind, name")),
    pause: (pause) => store.write("pause.changed", () => setPause(store, pause)),
    resume: (kind, name) =>
      store.write("pause.changed", function* () {
        return (yield* change("DELETE FROM pauses WHERE kind = ? AND name = ?", kind, name)) > 0;
      }),
    laterRuns: (run, targets, before) => store.read(() => laterRuns(run, targets, before)),
    overtakers: (run, limit) => store.look(() => overtakers(store, run, limit)),
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

/** Containers before their entries. */
function* withEntries(drop: string, path: string): Steps<readonly number[]> {
  const found = yield* rows<{ id: number }>(
    `WITH RECURSIVE inside (id) AS (
        SELECT id FROM arrivals WHERE name = ? AND path = ? AND drop_name = ? AND parent_id IS NULL
        UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id)
      SELECT id FROM inside ORDER BY id`,
    basename(path),
    path,
    drop,
  );
  return found.map(({ id }) => id);
}

/** Inside a write. */
function* forget(drop: string, path: string): Steps<Forgotten> {
  const ids = yield* withEntries(drop, path);
  const runs: RunRow[] = [];
  for (const id of ids) {
    const found = yield* cells<RunCells>(`${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id`, id);
    runs.push(...found.map(toRunRow));
  }
  const busy = runs.find(isUnderWay);
  if (busy !== undefined)
    throw new RejectedError("HG-LEDG-006", {
      operation: "forget",
      subject: path,
      message: `run ${busy.run.id} of ${busy.run.path} is under way (${busy.run.state})`,
    });
  let unanswered = 0;
  for (const { run } of runs) unanswered += yield* unansweredOf(run.id);
  // Entries refer to their containers.
  for (const id of ids.toReversed()) yield* deleteArrival(id);
  return {
    arrivals: ids.length,
    runs: runs.map(({ run }) => run.id),
    acceptedPoints: runs.reduce((sum, { run }) => sum + run.points.accepted, 0),
    unanswered,
  };
}

function* unansweredOf(runId: string): Steps<number> {
  const found = yield* row<{ n: number }>(
    "SELECT count(*) AS n FROM batches WHERE run_id = ? AND state = 'sending'",
    runId,
  );
  return found?.n ?? 0;
}

/** An accepted run of which more may be told is not at rest, and one whose source is still to be finished. */
function isUnderWay({ run, settled }: RunRow): boolean {
  const open: readonly RunState[] = [...OPEN_RUN_STATES, "held"];
  if (open.includes(run.state)) return true;
  if (run.state === "accepted" || run.state === "opened") return !settled;
  return run.finishedAt === null;
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

/** By the digests of targets; an equal digest of unequal targets costs a look, no more. */
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
    if (found === null || !DELIVERED.includes(found.state) || found.arrivalId === run.arrivalId) continue;
    if (found.binding.service === run.binding.service) later.push(found);
  }
  return later;
}

const WENT_BY = "'delivering', 'accepted', 'confirmed', 'discarded'";

/** From the few runs that are younger, or from their targets, whichever the planner finds less. */
export function* overtakers(
  { dialect }: Store,
  run: Run,
  limit: number,
  states = WENT_BY,
): Steps<readonly Run[]> {
  const found = yield* cells<RunCells>(
    `${SELECT_RUN} WHERE runs.id > ? AND runs.arrival_id <> ?
      AND runs.state IN (${states})
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

const DELIVERED: readonly RunState[] = ["accepted", "confirmed", "discarded"];
