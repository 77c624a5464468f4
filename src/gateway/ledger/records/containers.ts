/** Containers and their entries. */
import { basename } from "node:path/posix";
import { row, rows, type Steps } from "#core/sql/statements.ts";
import type { Arrival, FileEntry, Reason, Run, RunState } from "../../model.ts";
import { RUN_STATES, runStatesThat } from "../../states.ts";
import type { EntriesState, Ledger } from "../ledger.ts";
import { mustFindArrival } from "./arrivals.ts";
import { releaseContainerLanes } from "./container-lanes.ts";
import { appendEvent } from "./events.ts";
import { type ArrivalRow, toArrival } from "./rows.ts";
import { literals } from "./run-indexes.ts";
import { findRun, moveRun, mustFindRun, noteRun } from "./runs.ts";
import type { Store } from "./store.ts";

export function containerMethods(
  store: Store,
): Pick<Ledger, "recordOpened" | "entries" | "awaitedEntries" | "restContainer" | "runOf"> {
  return {
    recordOpened: (id, entries, detail) => store.write("run.opened", () => recordOpened(store, id, entries, detail)),
    entries: (arrivalId) => store.read(() => entriesOf(arrivalId)),
    awaitedEntries: (arrivalId) => store.read(() => awaitedIn(arrivalId)),
    restContainer: (id, seen, reason) => store.write("run.noted", () => restContainer(store, id, seen, reason)),
    runOf: (arrivalId) => store.read(() => runOf(arrivalId)),
  };
}

function* recordOpened(
  store: Store,
  id: string,
  entries: readonly Pick<FileEntry, "path" | "size">[],
  detail: string,
): Steps<Run> {
  const container = yield* mustFindArrival((yield* mustFindRun(id)).arrivalId);
  yield* moveRun(store, id, "fetched", "opened", { reason: null, detail });
  for (const entry of entries) yield* addEntry(store, container, entry);
  yield* releaseContainerLanes(container.id);
  return yield* mustFindRun(id);
}

function* addEntry(store: Store, container: Arrival, entry: Pick<FileEntry, "path" | "size">): Steps<void> {
  const path = `${container.path}!/${entry.path}`;
  const now = store.now();
  const added = yield* row<{ id: number }>(
    `INSERT INTO arrivals
      (parent_id, drop_name, path, name, size, mtime, state, reason, seen_at, changed_at, gone_at)
      VALUES (?, ?, ?, ?, ?, ?, 'settling', 'its container was opened', ?, ?, ?)
      ON CONFLICT DO NOTHING RETURNING id`,
    container.id,
    container.drop,
    path,
    basename(path),
    entry.size,
    container.mtime,
    now,
    now,
    container.goneAt,
  );
  if (added === undefined) return;
  yield* appendEvent(store, {
    arrivalId: added.id,
    runId: null,
    operationId: null,
    what: "arrival.settling",
    detail: `${path}, ${entry.size} bytes, unpacked`,
  });
}

function* restContainer(store: Store, id: string, seen: EntriesState, reason: Reason): Steps<boolean> {
  const run = yield* mustFindRun(id);
  if (JSON.stringify(yield* entriesOf(run.arrivalId)) !== JSON.stringify(seen)) return false;
  const said = run.reason?.message === reason.message;
  yield* noteRun(store, id, { settled: true, reason, ...(said ? {} : { event: "container.stays" }) });
  return true;
}

function* runOf(arrivalId: number): Steps<Run | null> {
  const id = (yield* row<{ run_id: string | null }>("SELECT run_id FROM arrivals WHERE id = ?", arrivalId))?.run_id;
  return id === null || id === undefined ? null : yield* findRun(id);
}

interface EntryRow extends ArrivalRow {
  readonly run: RunState | null;
  readonly run_id: string | null;
  readonly finished: number;
  readonly settled: number;
}

function* entriesOf(arrivalId: number): Steps<EntriesState> {
  const unclaimed: Arrival[] = [];
  const staying: EntriesState["staying"][number][] = [];
  let inProgress: string | null = null;
  let done = 0;
  for (const entry of yield* entryRows(arrivalId)) {
    const standing = standingOf(entry);
    if (standing === "unclaimed") unclaimed.push(toArrival(entry));
    else if (standing === "unfinished") inProgress = entry.run_id;
    else if (standing === "done") done += 1;
    else
      staying.push({
        path: entry.path,
        state: entry.state === "matched" && entry.run !== null ? entry.run : entry.state,
        runId: entry.run_id,
      });
  }
  return { unclaimed, inProgress: inProgress === null ? null : yield* findRun(inProgress), done, staying };
}

const AWAITED = literals(runStatesThat(({ isAwaited }) => isAwaited));

function* awaitedIn(arrivalId: number): Steps<number> {
  const found = yield* row<{ awaited: number }>(
    `WITH RECURSIVE inside(id, run_id) AS (
      SELECT id, run_id FROM arrivals WHERE parent_id = ?
      UNION ALL SELECT arrivals.id, arrivals.run_id FROM inside JOIN arrivals ON arrivals.parent_id = inside.id
    ) SELECT count(*) AS awaited FROM inside JOIN runs ON runs.id = inside.run_id WHERE runs.state IN (${AWAITED})`,
    arrivalId,
  );
  return Number(found?.awaited ?? 0);
}

function entryRows(arrivalId: number): Steps<readonly EntryRow[]> {
  return rows<EntryRow>(
    `SELECT arrivals.*, runs.state AS run, CASE WHEN runs.finished_at IS NULL THEN 0 ELSE 1 END AS finished,
        coalesce(runs.settled, 0) AS settled
      FROM arrivals LEFT JOIN runs ON runs.id = arrivals.run_id WHERE arrivals.parent_id = ? ORDER BY arrivals.id`,
    arrivalId,
  );
}

/** A step of its own finishes a run at rest; until then the entry has remaining steps. */
function standingOf({ state, run, finished, settled }: EntryRow): "unclaimed" | "unfinished" | "done" | "staying" {
  if (state === "settling") return "unclaimed";
  if (state === "duplicate") return "done";
  if (state !== "matched" || run === null) return "staying";
  const { isOpen, isClosing, end } = RUN_STATES[run];
  if (isOpen) return "unfinished";
  if (run === "held" || (run === "unconfirmed" && finished === 0)) return "staying";
  if (finished === 1) return end === "delivered" ? "done" : "staying";
  return isClosing && settled === 1 ? "staying" : "unfinished";
}
