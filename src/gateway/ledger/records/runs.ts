import type { InvariantError } from "#core/errors.ts";
import { cells, execute, executeEach, row, rows, type Steps, type Value } from "#core/sql/statements.ts";
import type { Binding, ConfirmClock, LedgerEvent, Points, RejectedRow, Run, RunState } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import type { Ledger, RunChange, RunPassage } from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../transitions.ts";
import { removeContainerLanes } from "./container-lanes.ts";
import { appendEvent, appendEvents, leaveDrop } from "./events.ts";
import { watchFile } from "./finished-files.ts";
import { type RunCells, SELECT_RUN, toRun } from "./rows.ts";
import { countRuns, groupsOf, recentRuns, runsIn } from "./run-lists.ts";
import { reopenContainer, type Store } from "./store.ts";

type RunMethods = Pick<
  Ledger,
  | "advanceRun"
  | "noteRun"
  | "noteConfirmClock"
  | "run"
  | "runsIn"
  | "groupsOf"
  | "latestRunOf"
  | "recentRuns"
  | "countRuns"
  | "rejectedRows"
>;

/** Cached, since many runs share a binding, which is never changed. */
const sharedTexts = new WeakMap<Binding, string>();

export function runMethods(store: Store): RunMethods {
  return {
    advanceRun: (id, from, to, change) => store.write(`run.${to}`, () => moveRun(store, id, from, to, change ?? {})),
    noteRun: (id, change) => store.write("run.noted", () => noteRun(store, id, change)),
    noteConfirmClock: (id, clock) => store.write("run.noted", () => noteConfirmClock(store, id, clock)),
    run: (id) => store.look(() => findRun(id)),
    runsIn: (states, options) => store.read(() => runsIn(store, states, options ?? {})),
    groupsOf: (states, by, filter) => store.look(() => groupsOf(store, states, by, filter ?? {})),
    latestRunOf: (trigger) => store.look(() => latestRunOf(store, trigger)),
    recentRuns: (limit, states, before) => store.read(() => recentRuns(store, limit, states, before)),
    countRuns: (states, of = "all") => store.look(() => countRuns(states, of)),
    rejectedRows: (runId) => store.look(() => rejectedRowsOf(runId)),
  };
}

export function* findRun(id: string): Steps<Run | null> {
  const [found] = yield* cells<RunCells>(RUN_BY_ID, id);
  return found === undefined ? null : toRun(found);
}

const RUN_BY_ID = `${SELECT_RUN} WHERE runs.id = ?`;

export function* mustFindRun(id: string): Steps<Run> {
  const run = yield* findRun(id);
  if (run === null) throw missingRun(id);
  return run;
}

export function missingRun(id: string): InvariantError {
  return brokenInvariant("find run", id, `there is no run ${id} in the ledger`);
}

export function* lastRunId(): Steps<string | undefined> {
  return (yield* row<{ id: string }>("SELECT id FROM runs ORDER BY id DESC LIMIT 1"))?.id;
}

/** For use inside a write. */
export function* moveRun(store: Store, id: string, from: RunState, to: RunState, change: RunChange): Steps<Run> {
  yield* assertOwn(store, id, from);
  return yield* advance(store, yield* mustFindRun(id), from, to, change);
}

/**
 * For use inside a write: no other node works on the run. A webhook may report the outcome of an ended run to
 * any node.
 */
export function* assertOwn(store: Store, id: string, from: RunState): Steps<void> {
  const { isAccepted, isAtRest } = RUN_STATES[from];
  if (!(isAccepted && isAtRest)) yield* store.assertRun(id);
}

/** Columns of `runs` that are not facts of a `Run`. */
export type HiddenCells = Readonly<Partial<Record<"target_kinds" | "refused" | "settled", Value>>>;

/** For use inside a write, with the run as read in it. */
export function advance(store: Store, run: Run, from: RunState, to: RunState, change: RunChange): Steps<Run> {
  return advanceThrough(store, run, from, [{ to, change }]);
}

/**
 * The one place where runs change state: each transition is asserted and has its event. For use inside a
 * write, with the run as read in it.
 */
export function* advanceThrough(
  store: Store,
  run: Run,
  from: RunState,
  through: readonly RunPassage[],
  hidden: HiddenCells = {},
): Steps<Run> {
  const { id } = run;
  assertState(run, from);
  let to = from;
  for (const passage of through) {
    assertTransition("run", id, to, passage.to);
    to = passage.to;
  }
  const change: RunChange = Object.assign({}, ...through.map((passage) => passage.change));
  const after = yield* applyChange(store, run, to, change, hidden);
  const { isInProgress, isAccepted, isAtRest } = RUN_STATES[to];
  // The container ends without being opened.
  if (run.binding.unpack !== undefined && isAtRest) yield* removeContainerLanes(id);
  // Other runs may have to wait for it, or a replay must not overwrite it; accepted readings may have
  // overwritten others.
  if (!isInProgress && !isAccepted && after.points.accepted === 0)
    yield* execute("DELETE FROM run_targets WHERE run_id = ?", id);
  const events = through.map((passage) => eventOf(run, `run.${passage.to}`, wordsOf(passage.change ?? {})));
  yield* appendEvents(store, events, run);
  return after;
}

/** Guards against concurrent changes of the same run. */
export function assertState({ id, state }: Run, from: RunState): void {
  if (state === from) return;
  throw brokenInvariant("advance run", id, `run ${id} is ${state}, and not ${from} as expected`);
}

/** For use inside a write. */
export function* noteRun(store: Store, id: string, change: RunChange): Steps<Run> {
  yield* store.assertRun(id);
  const run = yield* mustFindRun(id);
  const after = yield* applyChange(store, run, run.state, change, {});
  if (change.event !== undefined) yield* appendRunEvent(store, run, change.event, change);
  return after;
}

/** For use inside a write. The run itself did not change, so the time of its last change stays. */
function* noteConfirmClock(store: Store, id: string, clock: ConfirmClock): Steps<void> {
  yield* store.assertRun(id);
  yield* execute("UPDATE runs SET confirm_clock = ? WHERE id = ?", JSON.stringify(clock), id);
}

/** Appends an event of a run. For use inside a write. */
function appendRunEvent(store: Store, run: Run, what: string, change: RunChange): Steps<void> {
  return appendEvent(store, eventOf(run, what, wordsOf(change)), run);
}

const wordsOf = ({ detail, reason }: RunChange): string => detail ?? reason?.message ?? "";

export function eventOf(run: Run, what: string, detail: string): Omit<LedgerEvent, "at"> {
  return { arrivalId: run.arrivalId, runId: run.id, operationId: null, what, detail };
}

/**
 * Returns the changed run. For use inside a write; the caller asserts the transition and appends the event.
 */
export function* applyChange(store: Store, run: Run, to: RunState, change: RunChange, hidden: HiddenCells): Steps<Run> {
  const plan = change.finishPlan === undefined ? null : JSON.stringify(change.finishPlan);
  if (plan !== null && run.finishPlan !== null && JSON.stringify(run.finishPlan) !== plan)
    throw brokenInvariant("plan finish", run.id, `the finish of run ${run.id} was already decided differently`);
  const after = changed(run, to, change, store.now());
  const settled = change.settled === undefined ? {} : { settled: Number(change.settled) };
  yield* updateCells(run.id, { ...changedCells(run, after), ...hidden, ...settled });
  if (change.sha256 !== undefined)
    yield* execute("UPDATE arrivals SET sha256 = ? WHERE id = ?", change.sha256, run.arrivalId);
  yield* reopenContainer(run.arrivalId, run.path);
  if (change.rejected !== undefined) yield* addRejectedRows(run.id, change.rejected);
  if (change.finished?.left === true)
    yield* execute(
      "UPDATE arrivals SET gone_at = coalesce(gone_at, ?) WHERE id = ?",
      change.finished.at,
      run.arrivalId,
    );
  if (change.gone === true) yield* leaveDrop(store, run.arrivalId, "arrival.gone", change.detail ?? "");
  if (change.watched !== undefined) yield* watchFile(store, { ...run, ...change.watched, runId: run.id });
  if (change.bound === undefined) return after;
  yield* execute(
    "UPDATE runs SET binding_id = ? WHERE id = ? AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = runs.id)",
    yield* bindingId({ ...run.binding, ...change.bound }),
    run.id,
  );
  return yield* mustFindRun(run.id);
}

function* latestRunOf({ dialect }: Store, trigger: string): Steps<Run | null> {
  const found = yield* row<{ id: string | null }>(
    `SELECT max((SELECT max(runs.id) FROM runs WHERE runs.binding_id = bindings.id)) AS id FROM bindings
      WHERE ${dialect.jsonField("bindings.json", "trigger")} = ?`,
    trigger,
  );
  const id = found?.id;
  return id === null || id === undefined ? null : yield* findRun(id);
}

// Rows that the mapper or the service refused, for the report of a run.

/** For use inside a write. */
export function addRejectedRows(runId: string, rejected: readonly RejectedRow[]): Steps<void> {
  return executeEach(
    "INSERT INTO rejected_rows (run_id, json) VALUES (?, ?)",
    ["text", "text"],
    rejected.map((one) => [runId, JSON.stringify(one)]),
  );
}

export function* rejectedRowsOf(runId: string): Steps<readonly RejectedRow[]> {
  const found = yield* rows<{ json: string }>("SELECT json FROM rejected_rows WHERE run_id = ? ORDER BY id", runId);
  return found.map(({ json }) => JSON.parse(json) as RejectedRow);
}

// The bindings of runs: what many runs share is stored once for all of them; who sent the file, and what its operations
// are named after, is in columns of the run.

export function* bindingId(binding: Binding): Steps<number> {
  const json = sharedJsonOf(binding);
  const known = yield* row<{ id: number }>("SELECT id FROM bindings WHERE json = ?", json);
  if (known !== undefined) return known.id;
  const added = yield* row<{ id: number }>("INSERT INTO bindings (json) VALUES (?) RETURNING id", json);
  if (added === undefined) throw brokenInvariant("bind run", binding.trigger, "no row came back");
  return added.id;
}

/** Of the part that runs share. */
export function sharedJsonOf(binding: Binding): string {
  const known = sharedTexts.get(binding);
  if (known !== undefined) return known;
  const { sender: _sender, operationPrefix: _prefix, ...shared } = binding;
  const text = JSON.stringify(shared);
  sharedTexts.set(binding, text);
  return text;
}

// A changed run, and the cells of its row that differ.

function changed(run: Run, state: RunState, change: RunChange, changedAt: string): Run {
  return {
    ...run,
    state,
    sha256: change.sha256 ?? run.sha256,
    reason: change.reason === undefined ? run.reason : change.reason,
    points: { ...run.points, ...change.points },
    findings: change.findings ?? run.findings,
    finishPlan: run.finishPlan ?? change.finishPlan ?? null,
    finishedAt: run.finishedAt ?? change.finished?.at ?? null,
    replay: change.replay ?? run.replay,
    changedAt,
  };
}

/** Only the changed cells, since each column that is written costs the indexes that contain it. */
function changedCells(before: Run, after: Run): Readonly<Record<string, Value>> {
  const cells: Record<string, Value> = { changed_at: after.changedAt };
  if (after.state !== before.state) cells["state"] = after.state;
  if (after.sha256 !== before.sha256) cells["sha256"] = after.sha256;
  if (after.reason !== before.reason) cells["reason"] = jsonOf(after.reason);
  if (after.findings !== before.findings && after.findings.length + before.findings.length > 0)
    cells["findings"] = listJson(after.findings);
  if (after.finishPlan !== before.finishPlan) cells["finish_plan"] = jsonOf(after.finishPlan);
  if (after.finishedAt !== before.finishedAt) cells["finished_at"] = after.finishedAt;
  if (after.replay !== before.replay) cells["replay"] = jsonOf(after.replay);
  for (const [name, points] of Object.entries(after.points) as [keyof Points, number][])
    if (points !== before.points[name]) cells[name] = points;
  return cells;
}

function updateCells(id: string, written: Readonly<Record<string, Value>>): Steps<void> {
  const set = `${Object.keys(written).join(" = ?, ")} = ?`;
  return execute(`UPDATE runs SET ${set} WHERE id = ?`, ...Object.values(written), id);
}

/** Null for an empty list, which nearly every run has. */
function listJson(list: readonly object[]): string | null {
  return list.length === 0 ? null : JSON.stringify(list);
}

export function jsonOf(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}
