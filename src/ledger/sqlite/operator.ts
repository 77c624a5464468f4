/** What operators order: pausing, forgetting, and what they have to see to. */
import { basename } from "node:path/posix";
import type { Arrival, Pause, Run, RunState } from "../../model.ts";
import { RejectedError } from "../../support/errors.ts";
import type { Forgotten, Ledger, RestingRun, TargetKey } from "../ledger.ts";
import { OPEN_RUN_STATES } from "../states.ts";
import { findArrival } from "./arrivals.ts";
import { digestOf } from "./lanes.ts";
import { DELETIONS } from "./pruning.ts";
import { type ArrivalRow, type RunRow, SELECT_RUN, toArrival, toRun } from "./rows.ts";
import { row, rows, type Store } from "./store.ts";

type OperatorMethods = Pick<
  Ledger,
  "restingIn" | "arrivalsAt" | "forget" | "pauses" | "pause" | "resume" | "laterRuns" | "overtakers"
>;

export function operatorMethods(store: Store): OperatorMethods {
  return {
    restingIn: async (states, limit) => store.read(() => restingIn(store, states, limit)),
    arrivalsAt: async (path, drop) => arrivalsAt(store, path, drop),
    forget: (drop, path) => store.write("arrivals.forgotten", () => forget(store, drop, path)),
    pauses: async () =>
      rows<Pause>(store.sql("SELECT kind, name, at, by, why FROM pauses ORDER BY kind, name")),
    pause: (pause) => store.write("pause.changed", () => setPause(store, pause)),
    resume: (kind, name) =>
      store.write("pause.changed", () => {
        const removed = store.sql("DELETE FROM pauses WHERE kind = ? AND name = ?").run(kind, name);
        return removed.changes > 0;
      }),
    laterRuns: async (run, targets, before) => store.read(() => laterRuns(store, run, targets, before)),
    overtakers: async (run, limit) => store.read(() => overtakers(store, run, limit)),
  };
}

function restingIn(store: Store, states: readonly RunState[], limit: number): readonly RestingRun[] {
  const statement = store.sql(`${SELECT_RUN} JOIN arrivals ON arrivals.run_id = runs.id
    WHERE runs.state IN (SELECT value FROM json_each(?)) ORDER BY runs.id DESC LIMIT ?`);
  return rows<RunRow>(statement, JSON.stringify(states), limit).flatMap((found) => {
    const arrival = findArrival(store, found.arrival_id);
    return arrival === null ? [] : [{ run: toRun(found), arrival }];
  });
}

function arrivalsAt(store: Store, path: string, drop: string | undefined): readonly Arrival[] {
  return rows<ArrivalRow>(
    store.sql(`SELECT * FROM arrivals WHERE name = ? AND path = ? AND (? IS NULL OR drop_name = ?)
      AND parent_id IS NULL ORDER BY id`),
    basename(path),
    path,
    drop ?? null,
    drop ?? null,
  ).map(toArrival);
}

/** Containers before their entries. */
function withEntries(store: Store, drop: string, path: string): readonly number[] {
  return rows<{ id: number }>(
    store.sql(`WITH RECURSIVE inside (id) AS (
        SELECT id FROM arrivals WHERE name = ? AND path = ? AND drop_name = ? AND parent_id IS NULL
        UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id)
      SELECT id FROM inside ORDER BY id`),
    basename(path),
    path,
    drop,
  ).map(({ id }) => id);
}

/** Inside a write. */
function forget(store: Store, drop: string, path: string): Forgotten {
  const ids = withEntries(store, drop, path);
  const runs = ids.flatMap((id) =>
    rows<RunRow>(store.sql(`${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id`), id),
  );
  const busy = runs.find(isUnderWay);
  if (busy !== undefined)
    throw new RejectedError("HG-LEDG-006", {
      operation: "forget",
      subject: path,
      message: `run ${busy.id} of ${busy.path} is under way (${busy.state})`,
    });
  const unanswered = runs.reduce((sum, run) => sum + unansweredOf(store, run.id), 0);
  // Entries refer to their containers.
  for (const id of ids.toReversed()) for (const deletion of DELETIONS) store.sql(deletion).run(id);
  return {
    arrivals: ids.length,
    runs: runs.map(({ id }) => id),
    acceptedPoints: runs.reduce((sum, run) => sum + run.accepted, 0),
    unanswered,
  };
}

function unansweredOf(store: Store, runId: string): number {
  const found = row<{ n: number }>(
    store.sql("SELECT count(*) AS n FROM batches WHERE run_id = ? AND state = 'sending'"),
    runId,
  );
  return found?.n ?? 0;
}

/** An accepted run of which more may be told is not at rest, and one whose source is still to be finished. */
function isUnderWay(run: RunRow): boolean {
  const open: readonly RunState[] = [...OPEN_RUN_STATES, "held"];
  if (open.includes(run.state)) return true;
  if (run.state === "accepted" || run.state === "opened") return run.settled === 0;
  return run.finished_at === null;
}

function setPause(store: Store, pause: Omit<Pause, "at">): Pause {
  const at = store.now();
  store
    .sql("INSERT OR REPLACE INTO pauses (kind, name, at, by, why) VALUES (?, ?, ?, ?, ?)")
    .run(pause.kind, pause.name, at, pause.by, pause.why);
  return { ...pause, at };
}

/** By the digests of targets; an equal digest of unequal targets costs a look, no more. */
function laterRuns(store: Store, run: Run, targets: readonly TargetKey[], before: string): readonly Run[] {
  const statement = store.sql(
    "SELECT run_id AS id FROM run_targets WHERE digest = ? AND run_id > ? AND run_id < ?",
  );
  const ids = new Set<string>();
  for (const target of targets)
    for (const { id } of rows<{ id: string }>(statement, digestOf(target), run.id, before)) ids.add(id);
  return [...ids].sort().flatMap((id) => {
    const found = row<RunRow>(store.sql(`${SELECT_RUN} WHERE runs.id = ?`), id);
    if (found === undefined || !DELIVERED.includes(found.state)) return [];
    const later = toRun(found);
    return later.arrivalId !== run.arrivalId && later.binding.service === run.binding.service ? [later] : [];
  });
}

/** From the few runs that are younger, or from their targets, whichever the planner finds less. */
function overtakers(store: Store, run: Run, limit: number): readonly Run[] {
  const statement = store.sql(`${SELECT_RUN} WHERE runs.id > ? AND runs.arrival_id <> ?
      AND runs.state IN ('delivering', 'accepted', 'confirmed', 'discarded')
      AND runs.id IN (SELECT other.run_id FROM run_targets AS own JOIN run_targets AS other ON other.digest = own.digest
        WHERE own.run_id = ? AND other.run_id > ?)
    ORDER BY runs.id`);
  const found: Run[] = [];
  for (const one of statement.iterate(run.id, run.arrivalId, run.id, run.id) as Iterable<unknown>) {
    const later = toRun(one as RunRow);
    if (later.binding.service === run.binding.service) found.push(later);
    if (found.length === limit) break;
  }
  return found;
}

const DELIVERED: readonly RunState[] = ["accepted", "confirmed", "discarded"];
