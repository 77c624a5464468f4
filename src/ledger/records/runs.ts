import type { Arrival, Binding, Reason, RejectedRow, Replay, Run, RunState } from "../../model.ts";
import { RejectedError } from "../../support/errors.ts";
import type { Ledger, RunChange, RunFilter, RunStart } from "../ledger.ts";
import { assertTransition, brokenInvariant, OPEN_RUN_STATES } from "../states.ts";
import { moveArrival, mustFindArrival } from "./arrivals.ts";
import { appendEvent } from "./events.ts";
import { reopenContainer } from "./reopening.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { execute, executeEach, NO_LIMIT, row, rows, type Steps, type Store, type Value } from "./store.ts";

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

export function runMethods(store: Store): RunMethods {
  return {
    openRun: (arrivalId, binding, lane, start = {}) =>
      store.write(["arrival.matched", "run.claimed"], () =>
        openRun(store, { arrivalId, binding, lane, ...start }),
      ),
    advanceRun: (id, from, to, change) =>
      store.write(`run.${to}`, () => moveRun(store, id, from, to, change ?? {})),
    noteRun: (id, change) => store.write("run.noted", () => noteRun(store, id, change)),
    run: (id) => store.look(() => findRun(id)),
    runsIn: (states, options) => store.read(() => runsIn(store, states, options ?? {})),
    groupsOf: (states, by, filter) => store.look(() => groupsOf(store, states, by, filter ?? {})),
    latestRunOf: (trigger) => store.look(() => latestRunOf(store, trigger)),
    recentRuns: (limit, states) => store.look(() => recentRuns(store, limit, states)),
    rejectedRows: (runId) => store.look(() => rejectedRowsOf(runId)),
  };
}

export function* findRun(id: string): Steps<Run | null> {
  const found = yield* findRunRow(id);
  return found === undefined ? null : toRun(found);
}

export function findRunRow(id: string): Steps<RunRow | undefined> {
  return row<RunRow>(`${SELECT_RUN} WHERE runs.id = ?`, id);
}

export function* mustFindRun(id: string): Steps<Run> {
  const run = yield* findRun(id);
  if (run === null) throw brokenInvariant("find run", id, `there is no run ${id} in the ledger`);
  return run;
}

export function* lastRunId(): Steps<string | undefined> {
  return (yield* row<{ id: string }>("SELECT id FROM runs ORDER BY id DESC LIMIT 1"))?.id;
}

interface NewRun extends RunStart {
  readonly arrivalId: number;
  readonly binding: Binding;
  readonly lane: string;
}

function* openRun(store: Store, { arrivalId, binding, lane, replay, refusal }: NewRun): Steps<Run> {
  const arrival = yield* mustFindArrival(arrivalId);
  if (replay !== undefined) yield* assertAtRest(arrival);
  else if (arrival.parentId === null) yield* store.assertDrop(arrival.drop, store.session);
  const id = yield* store.nextRunId();
  const now = store.now();
  yield* execute(
    `INSERT INTO runs (id, arrival_id, drop_name, path, size, mtime, sha256, binding_id, lane, state, replay, created_at, changed_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'claimed', ?, ?, ?)`,
    id,
    arrivalId,
    arrival.drop,
    arrival.path,
    arrival.size,
    arrival.mtime,
    arrival.sha256,
    yield* bindingId(binding),
    lane,
    replay === undefined ? null : JSON.stringify(replay),
    now,
    now,
  );
  yield* moveArrival(store, arrivalId, "matched", `claimed by trigger ${binding.trigger}`);
  yield* execute("UPDATE arrivals SET run_id = ? WHERE id = ?", id, arrivalId);
  yield* reopenContainer(arrivalId);
  yield* appendEvent(store, {
    arrivalId,
    runId: id,
    operationId: null,
    what: "run.claimed",
    detail: claimWords(binding, replay),
  });
  if (refusal !== undefined)
    yield* moveRun(store, id, "claimed", "quarantined", { reason: refusal, detail: refusal.message });
  return yield* mustFindRun(id);
}

/** Two persons may order the same at once. */
function* assertAtRest({ id, path }: Arrival): Steps<void> {
  const open: readonly RunState[] = [...OPEN_RUN_STATES, "held"];
  const latest = yield* row<RunRow>(
    `${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id DESC LIMIT 1`,
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

function* bindingId(binding: Binding): Steps<number> {
  const json = JSON.stringify(binding);
  const known = yield* row<{ id: number }>("SELECT id FROM bindings WHERE json = ?", json);
  if (known !== undefined) return known.id;
  const added = yield* row<{ id: number }>("INSERT INTO bindings (json) VALUES (?) RETURNING id", json);
  if (added === undefined) throw brokenInvariant("bind run", binding.trigger, "no row came back");
  return added.id;
}

/** Others may have to wait for it, or must not be overwritten by a replay. */
const KEEPS_TARGETS: readonly RunState[] = [...OPEN_RUN_STATES, "held", "accepted", "confirmed", "discarded"];

/** Inside a write. */
export function* moveRun(
  store: Store,
  id: string,
  from: RunState,
  to: RunState,
  change: RunChange,
): Steps<Run> {
  // What a webhook corrects may be told to any node.
  if (from !== "confirmed" && from !== "discarded") yield* store.assertRun(id);
  const run = yield* mustFindRun(id);
  if (run.state !== from)
    throw brokenInvariant("advance run", id, `run ${id} is ${run.state}, and not ${from} as was thought`);
  assertTransition("run", id, from, to);
  yield* applyChange(store, run, to, change);
  if (!KEEPS_TARGETS.includes(to)) yield* execute("DELETE FROM run_targets WHERE run_id = ?", id);
  yield* appendEvent(store, {
    arrivalId: run.arrivalId,
    runId: id,
    operationId: null,
    what: `run.${to}`,
    detail: change.detail ?? change.reason?.message ?? "",
  });
  return yield* mustFindRun(id);
}

/** Inside a write. */
export function* noteRun(store: Store, id: string, change: RunChange): Steps<Run> {
  yield* store.assertRun(id);
  const run = yield* mustFindRun(id);
  yield* applyChange(store, run, run.state, change);
  if (change.event !== undefined)
    yield* appendEvent(store, {
      arrivalId: run.arrivalId,
      runId: id,
      operationId: null,
      what: change.event,
      detail: change.detail ?? change.reason?.message ?? "",
    });
  return yield* mustFindRun(id);
}

function* applyChange(store: Store, run: Run, to: RunState, change: RunChange): Steps<void> {
  const plan = change.finishPlan === undefined ? null : JSON.stringify(change.finishPlan);
  if (plan !== null && run.finishPlan !== null && JSON.stringify(run.finishPlan) !== plan)
    throw brokenInvariant("plan finish", run.id, `the finish of run ${run.id} was decided before, otherwise`);
  const reason: Reason | null = change.reason === undefined ? run.reason : change.reason;
  yield* execute(
    `UPDATE runs SET state = ?, sha256 = coalesce(?, sha256), reason = ?,
      mapped = coalesce(?, mapped), accepted = coalesce(?, accepted), stored = coalesce(?, stored),
      rejected = coalesce(?, rejected), discarded = coalesce(?, discarded),
      finish_plan = coalesce(finish_plan, ?), finished_at = coalesce(finished_at, ?),
      settled = coalesce(?, settled), replay = coalesce(?, replay), changed_at = ? WHERE id = ?`,
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
    yield* execute("UPDATE arrivals SET sha256 = ? WHERE id = ?", change.sha256, run.arrivalId);
  yield* reopenContainer(run.arrivalId);
  if (change.mapper !== undefined)
    yield* execute(
      "UPDATE runs SET binding_id = ? WHERE id = ? AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = runs.id)",
      yield* bindingId({ ...run.binding, mapper: change.mapper }),
      run.id,
    );
  if (change.rejected !== undefined) yield* addRejectedRows(run.id, change.rejected);
  if (change.finished?.left === true)
    yield* execute(
      "UPDATE arrivals SET gone_at = coalesce(gone_at, ?) WHERE id = ?",
      change.finished.at,
      run.arrivalId,
    );
}

/** Inside a write. */
export function addRejectedRows(runId: string, rejected: readonly RejectedRow[]): Steps<void> {
  return executeEach(
    "INSERT INTO rejected_rows (run_id, json) VALUES (?, ?)",
    ["text", "text"],
    rejected.map((one) => [runId, JSON.stringify(one)]),
  );
}

export function* rejectedRowsOf(runId: string): Steps<readonly RejectedRow[]> {
  const found = yield* rows<{ json: string }>(
    "SELECT json FROM rejected_rows WHERE run_id = ? ORDER BY id",
    runId,
  );
  return found.map(({ json }) => JSON.parse(json) as RejectedRow);
}

/** State by state, since each comes in the order of its index; so a limit costs no sort of the rest. */
function* runsIn(store: Store, states: readonly RunState[], filter: RunFilter): Steps<readonly Run[]> {
  const { dialect } = store;
  const limit = filter.limit ?? NO_LIMIT;
  const { index, where, values } = conditionOf(filter, store);
  const select = SELECT_RUN.replace("FROM runs", `FROM runs ${dialect.indexedBy(index)}`);
  const found: RunRow[] = [];
  for (const state of new Set(states))
    for (const one of yield* rows<RunRow>(
      `${select} WHERE runs.state = ?${where} ORDER BY runs.id LIMIT ?`,
      state,
      ...values,
      limit,
    ))
      found.push(one);
  found.sort((a, b) => (a.id < b.id ? -1 : 1));
  return found.slice(0, limit).map(toRun);
}

/** State by state, along the index that leads with what is asked for. */
function* groupsOf(
  store: Store,
  states: readonly RunState[],
  by: "drop" | "lane",
  filter: RunFilter,
): Steps<readonly string[]> {
  const column = by === "drop" ? "drop_name" : "lane";
  const { dialect } = store;
  const condition = conditionOf(filter, store);
  const { where, values } = condition;
  const index = filter.unfinished === true || filter.unsettled === true ? condition.index : `runs_${by}`;
  const names = new Set<string>();
  for (const state of states)
    for (const { name } of yield* rows<{ name: string }>(
      `SELECT DISTINCT runs.${column} AS name FROM runs ${dialect.indexedBy(index)} WHERE runs.state = ?${where}`,
      state,
      ...values,
    ))
      names.add(name);
  return [...names];
}

function conditionOf(
  { unfinished, unsettled, drop, lane, after, ours }: RunFilter,
  store: Store,
): {
  readonly index: string;
  readonly where: string;
  readonly values: readonly Value[];
} {
  const own = ours === true ? store.ours() : { where: "", values: [] };
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
    where: conditions.map((condition) => ` AND ${condition}`).join("") + own.where,
    values: [...[drop, lane, after].filter((value) => value !== undefined), ...own.values],
  };
}

function* latestRunOf({ dialect }: Store, trigger: string): Steps<Run | null> {
  const found = yield* row<{ id: string | null }>(
    `SELECT max(runs.id) AS id FROM runs JOIN bindings ON bindings.id = runs.binding_id
      WHERE ${dialect.jsonField("bindings.json", "trigger")} = ?`,
    trigger,
  );
  const id = found?.id;
  return id === null || id === undefined ? null : yield* findRun(id);
}

function* recentRuns(
  { dialect }: Store,
  limit: number,
  states: readonly RunState[] | undefined,
): Steps<readonly Run[]> {
  const where = states === undefined ? "" : `WHERE ${dialect.among("runs.state")}`;
  const found = yield* rows<RunRow>(
    `${SELECT_RUN} ${where} ORDER BY runs.id DESC LIMIT ?`,
    ...(states === undefined ? [] : [JSON.stringify(states)]),
    limit,
  );
  return found.map(toRun);
}
