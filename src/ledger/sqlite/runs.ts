import type { Arrival, Binding, Reason, RejectedRow, Replay, Run, RunState } from "../../model.ts";
import { RejectedError } from "../../support/errors.ts";
import { createRunIds } from "../../support/run-id.ts";
import type { Ledger, RunChange, RunFilter } from "../ledger.ts";
import { assertTransition, brokenInvariant, OPEN_RUN_STATES } from "../states.ts";
import { moveArrival, mustFindArrival } from "./arrivals.ts";
import { appendEvent } from "./events.ts";
import { reopenContainer } from "./reopening.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { row, rows, type Store } from "./store.ts";

type RunMethods = Pick<
  Ledger,
  | "openRun"
  | "advanceRun"
  | "noteRun"
  | "run"
  | "runsIn"
  | "groupsOf"
  | "latestRunOf"
  | "recentRuns"
  | "rejectedRows"
>;

const NO_LIMIT = -1;

export function runMethods(store: Store): RunMethods {
  const last = row<{ id: string }>(store.sql("SELECT id FROM runs ORDER BY id DESC LIMIT 1"));
  const nextId = createRunIds(last?.id);
  return {
    openRun: (arrivalId, binding, lane, replay) =>
      store.write(["arrival.matched", "run.claimed"], () => {
        const id = nextId(store.clock.now().epochMilliseconds);
        return openRun(store, { id, arrivalId, binding, lane, replay });
      }),
    advanceRun: (id, from, to, change) =>
      store.write(`run.${to}`, () => moveRun(store, id, from, to, change ?? {})),
    noteRun: (id, change) => store.write("run.noted", () => noteRun(store, id, change)),
    run: async (id) => findRun(store, id),
    runsIn: async (states, options) => runsIn(store, states, options ?? {}),
    groupsOf: async (states, by, filter) => groupsOf(store, states, by, filter ?? {}),
    latestRunOf: async (trigger) => latestRunOf(store, trigger),
    recentRuns: async (limit, states) => recentRuns(store, limit, states),
    rejectedRows: async (runId) => rejectedRowsOf(store, runId),
  };
}

export function findRun(store: Store, id: string): Run | null {
  const found = findRunRow(store, id);
  return found === undefined ? null : toRun(found);
}

export function findRunRow(store: Store, id: string): RunRow | undefined {
  return row<RunRow>(store.sql(`${SELECT_RUN} WHERE runs.id = ?`), id);
}

export function mustFindRun(store: Store, id: string): Run {
  const run = findRun(store, id);
  if (run === null) throw brokenInvariant("find run", id, `there is no run ${id} in the ledger`);
  return run;
}

interface NewRun {
  readonly id: string;
  readonly arrivalId: number;
  readonly binding: Binding;
  readonly lane: string;
  readonly replay: Replay | undefined;
}

function openRun(store: Store, { id, arrivalId, binding, lane, replay }: NewRun): Run {
  const arrival = mustFindArrival(store, arrivalId);
  if (replay !== undefined) assertAtRest(store, arrival);
  const now = store.now();
  store
    .sql(`INSERT INTO runs (id, arrival_id, drop_name, path, size, mtime, sha256, binding_id, lane, state, replay, created_at, changed_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'claimed', ?, ?, ?)`)
    .run(
      id,
      arrivalId,
      arrival.drop,
      arrival.path,
      arrival.size,
      arrival.mtime,
      arrival.sha256,
      bindingId(store, binding),
      lane,
      replay === undefined ? null : JSON.stringify(replay),
      now,
      now,
    );
  moveArrival(store, arrivalId, "matched", `claimed by trigger ${binding.trigger}`);
  store.sql("UPDATE arrivals SET run_id = ? WHERE id = ?").run(id, arrivalId);
  reopenContainer(store, arrivalId);
  appendEvent(store, {
    arrivalId,
    runId: id,
    operationId: null,
    what: "run.claimed",
    detail: claimWords(binding, replay),
  });
  return mustFindRun(store, id);
}

/** Two persons may order the same at once. */
function assertAtRest(store: Store, { id, path }: Arrival): void {
  const open: readonly RunState[] = [...OPEN_RUN_STATES, "held"];
  const latest = row<RunRow>(
    store.sql(`${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id DESC LIMIT 1`),
    id,
  );
  if (latest === undefined || !open.includes(latest.state)) return;
  throw new RejectedError("HG-LEDG-006", {
    operation: "replay",
    subject: path,
    message: `run ${latest.id} of ${path} is under way (${latest.state})`,
  });
}

function claimWords({ trigger, mapper }: Binding, replay: Replay | undefined): string {
  const claimed = `by trigger ${trigger} for mapper ${mapper.name} ${mapper.version}`.trimEnd();
  if (replay === undefined) return claimed;
  const how = [
    replay.rejectedOnly ? "only what was not accepted" : "",
    replay.overwrite ? "overwriting" : "",
  ];
  const words = how.filter((word) => word !== "").join(", ");
  return `replay of run ${replay.of}, ordered by ${replay.by}${words === "" ? "" : ` (${words})`}; ${claimed}`;
}

function bindingId(store: Store, binding: Binding): number {
  const json = JSON.stringify(binding);
  const known = row<{ id: number }>(store.sql("SELECT id FROM bindings WHERE json = ?"), json);
  return known?.id ?? Number(store.sql("INSERT INTO bindings (json) VALUES (?)").run(json).lastInsertRowid);
}

/** Others may have to wait for it, or must not be overwritten by a replay. */
const KEEPS_TARGETS: readonly RunState[] = [...OPEN_RUN_STATES, "held", "accepted", "confirmed", "discarded"];

/** Inside a write. */
export function moveRun(store: Store, id: string, from: RunState, to: RunState, change: RunChange): Run {
  const run = mustFindRun(store, id);
  if (run.state !== from)
    throw brokenInvariant("advance run", id, `run ${id} is ${run.state}, and not ${from} as was thought`);
  assertTransition("run", id, from, to);
  applyChange(store, run, to, change);
  if (!KEEPS_TARGETS.includes(to)) store.sql("DELETE FROM run_targets WHERE run_id = ?").run(id);
  appendEvent(store, {
    arrivalId: run.arrivalId,
    runId: id,
    operationId: null,
    what: `run.${to}`,
    detail: change.detail ?? change.reason?.message ?? "",
  });
  return mustFindRun(store, id);
}

/** Inside a write. */
export function noteRun(store: Store, id: string, change: RunChange): Run {
  const run = mustFindRun(store, id);
  applyChange(store, run, run.state, change);
  if (change.event !== undefined)
    appendEvent(store, {
      arrivalId: run.arrivalId,
      runId: id,
      operationId: null,
      what: change.event,
      detail: change.detail ?? change.reason?.message ?? "",
    });
  return mustFindRun(store, id);
}

function applyChange(store: Store, run: Run, to: RunState, change: RunChange): void {
  const plan = change.finishPlan === undefined ? null : JSON.stringify(change.finishPlan);
  if (plan !== null && run.finishPlan !== null && JSON.stringify(run.finishPlan) !== plan)
    throw brokenInvariant("plan finish", run.id, `the finish of run ${run.id} was decided before, otherwise`);
  const reason: Reason | null = change.reason === undefined ? run.reason : change.reason;
  store
    .sql(`UPDATE runs SET state = ?, sha256 = coalesce(?, sha256), reason = ?,
      mapped = coalesce(?, mapped), accepted = coalesce(?, accepted), stored = coalesce(?, stored),
      rejected = coalesce(?, rejected), discarded = coalesce(?, discarded),
      finish_plan = coalesce(finish_plan, ?), finished_at = coalesce(finished_at, ?),
      settled = coalesce(?, settled), replay = coalesce(?, replay), changed_at = ? WHERE id = ?`)
    .run(
      to,
      change.sha256 ?? null,
      reason === null ? null : JSON.stringify(reason),
      change.points?.mapped ?? null,
      change.points?.accepted ?? null,
      change.points?.stored ?? null,
      change.points?.rejected ?? null,
      change.points?.discarded ?? null,
      plan,
      change.finished?.at ?? null,
      change.settled === undefined ? null : Number(change.settled),
      change.replay === undefined ? null : JSON.stringify(change.replay),
      store.now(),
      run.id,
    );
  if (change.sha256 !== undefined)
    store.sql("UPDATE arrivals SET sha256 = ? WHERE id = ?").run(change.sha256, run.arrivalId);
  reopenContainer(store, run.arrivalId);
  if (change.mapper !== undefined)
    store
      .sql(
        "UPDATE runs SET binding_id = ? WHERE id = ? AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = runs.id)",
      )
      .run(bindingId(store, { ...run.binding, mapper: change.mapper }), run.id);
  if (change.rejected !== undefined) addRejectedRows(store, run.id, change.rejected);
  if (change.finished?.left === true)
    store
      .sql("UPDATE arrivals SET gone_at = coalesce(gone_at, ?) WHERE id = ?")
      .run(change.finished.at, run.arrivalId);
}

/** Inside a write. */
export function addRejectedRows(store: Store, runId: string, rejected: readonly RejectedRow[]): void {
  const insert = store.sql("INSERT INTO rejected_rows (run_id, json) VALUES (?, ?)");
  for (const one of rejected) insert.run(runId, JSON.stringify(one));
}

export function rejectedRowsOf(store: Store, runId: string): readonly RejectedRow[] {
  return rows<{ json: string }>(
    store.sql("SELECT json FROM rejected_rows WHERE run_id = ? ORDER BY id"),
    runId,
  ).map(({ json }) => JSON.parse(json) as RejectedRow);
}

/** State by state, since each comes in the order of its index; so a limit costs no sort of the rest. */
function runsIn(store: Store, states: readonly RunState[], filter: RunFilter): readonly Run[] {
  const limit = filter.limit ?? NO_LIMIT;
  const { index, where, values } = conditionOf(filter);
  const select = SELECT_RUN.replace("FROM runs", `FROM runs INDEXED BY ${index}`);
  const statement = store.sql(`${select} WHERE runs.state = ?${where} ORDER BY runs.id LIMIT ?`);
  const found = store.read(() =>
    [...new Set(states)].flatMap((state) => rows<RunRow>(statement, state, ...values, limit)),
  );
  found.sort((a, b) => (a.id < b.id ? -1 : 1));
  return (limit === NO_LIMIT ? found : found.slice(0, limit)).map(toRun);
}

/** State by state, along the index that leads with what is asked for. */
function groupsOf(
  store: Store,
  states: readonly RunState[],
  by: "drop" | "lane",
  filter: RunFilter,
): readonly string[] {
  const column = by === "drop" ? "drop_name" : "lane";
  const { where, values } = conditionOf(filter);
  const index =
    filter.unfinished === true || filter.unsettled === true ? conditionOf(filter).index : `runs_${by}`;
  const statement = store.sql(
    `SELECT DISTINCT runs.${column} AS name FROM runs INDEXED BY ${index} WHERE runs.state = ?${where}`,
  );
  const names = states.flatMap((state) => rows<{ name: string }>(statement, state, ...values));
  return [...new Set(names.map(({ name }) => name))];
}

function conditionOf({ unfinished, unsettled, drop, lane, after }: RunFilter): {
  readonly index: string;
  readonly where: string;
  readonly values: readonly string[];
} {
  const conditions = [
    ...(unfinished === true ? ["runs.finished_at IS NULL"] : []),
    ...(unsettled === true ? ["runs.settled = 0"] : []),
    ...(drop === undefined ? [] : ["runs.drop_name = ?"]),
    ...(lane === undefined ? [] : ["runs.lane = ?"]),
    ...(after === undefined ? [] : ["runs.id > ?"]),
  ];
  const index =
    unfinished === true
      ? "runs_unfinished"
      : unsettled === true
        ? "runs_unsettled"
        : lane !== undefined
          ? "runs_lane"
          : drop !== undefined
            ? "runs_drop"
            : "runs_state";
  return {
    index,
    where: conditions.map((condition) => ` AND ${condition}`).join(""),
    values: [drop, lane, after].filter((value) => value !== undefined),
  };
}

function latestRunOf(store: Store, trigger: string): Run | null {
  const statement = store.sql(
    `SELECT max(runs.id) AS id FROM runs JOIN bindings ON bindings.id = runs.binding_id WHERE bindings.json ->> '$.trigger' = ?`,
  );
  const id = row<{ id: string | null }>(statement, trigger)?.id;
  return id === null || id === undefined ? null : findRun(store, id);
}

function recentRuns(store: Store, limit: number, states: readonly RunState[] | undefined): readonly Run[] {
  const statement = store.sql(
    `${SELECT_RUN} WHERE ? OR runs.state IN (SELECT value FROM json_each(?)) ORDER BY runs.id DESC LIMIT ?`,
  );
  const all = states === undefined ? 1 : 0;
  return rows<RunRow>(statement, all, JSON.stringify(states ?? []), limit).map(toRun);
}
