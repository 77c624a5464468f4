/** Containers and their entries. */
import { basename } from "node:path/posix";
import type { Arrival, FileEntry, Reason, Run, RunState } from "../../model.ts";
import type { EntriesState, Ledger } from "../ledger.ts";
import { OPEN_RUN_STATES } from "../states.ts";
import { mustFindArrival } from "./arrivals.ts";
import { appendEvent } from "./events.ts";
import { type ArrivalRow, toArrival } from "./rows.ts";
import { findRun, moveRun, mustFindRun, noteRun } from "./runs.ts";
import { row, rows, type Store } from "./store.ts";

export function containerMethods(
  store: Store,
): Pick<Ledger, "recordOpened" | "entries" | "restContainer" | "runOf"> {
  return {
    recordOpened: (id, entries, detail) =>
      store.write("run.opened", () => recordOpened(store, id, entries, detail)),
    entries: async (arrivalId) => store.read(() => entriesOf(store, arrivalId)),
    restContainer: (id, seen, reason) =>
      store.write("run.noted", () => restContainer(store, id, seen, reason)),
    runOf: async (arrivalId) => store.read(() => runOf(store, arrivalId)),
  };
}

function recordOpened(
  store: Store,
  id: string,
  entries: readonly Pick<FileEntry, "path" | "size">[],
  detail: string,
): Run {
  const container = mustFindArrival(store, mustFindRun(store, id).arrivalId);
  moveRun(store, id, "fetched", "opened", { reason: null, detail });
  for (const entry of entries) addEntry(store, container, entry);
  return mustFindRun(store, id);
}

function addEntry(store: Store, container: Arrival, entry: Pick<FileEntry, "path" | "size">): void {
  const path = `${container.path}!/${entry.path}`;
  const now = store.now();
  const added = row<{ id: number }>(
    store.sql(`INSERT INTO arrivals
      (parent_id, drop_name, path, name, size, mtime, state, reason, seen_at, changed_at, gone_at)
      VALUES (?, ?, ?, ?, ?, ?, 'settling', 'its container was opened', ?, ?, ?)
      ON CONFLICT DO NOTHING RETURNING id`),
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
  appendEvent(store, {
    arrivalId: added.id,
    runId: null,
    operationId: null,
    what: "arrival.settling",
    detail: `${path}, ${entry.size} bytes, unpacked`,
  });
}

function restContainer(store: Store, id: string, seen: EntriesState, reason: Reason): boolean {
  const run = mustFindRun(store, id);
  if (JSON.stringify(entriesOf(store, run.arrivalId)) !== JSON.stringify(seen)) return false;
  const said = run.reason?.message === reason.message;
  noteRun(store, id, { settled: true, reason, ...(said ? {} : { event: "container.stays" }) });
  return true;
}

function runOf(store: Store, arrivalId: number): Run | null {
  const id = row<{ run_id: string | null }>(
    store.sql("SELECT run_id FROM arrivals WHERE id = ?"),
    arrivalId,
  )?.run_id;
  return id === null || id === undefined ? null : findRun(store, id);
}

interface EntryRow extends ArrivalRow {
  readonly run: RunState | null;
  readonly run_id: string | null;
  readonly finished: number;
  readonly settled: number;
}

function entriesOf(store: Store, arrivalId: number): EntriesState {
  const unclaimed: Arrival[] = [];
  const staying: EntriesState["staying"][number][] = [];
  let underWay: string | null = null;
  let done = 0;
  for (const entry of entryRows(store, arrivalId)) {
    const standing = standingOf(entry);
    if (standing === "unclaimed") unclaimed.push(toArrival(entry));
    else if (standing === "under way") underWay = entry.run_id;
    else if (standing === "done") done += 1;
    else
      staying.push({
        path: entry.path,
        state: entry.state === "matched" && entry.run !== null ? entry.run : entry.state,
      });
  }
  return { unclaimed, underWay: underWay === null ? null : findRun(store, underWay), done, staying };
}

function entryRows(store: Store, arrivalId: number): readonly EntryRow[] {
  return rows<EntryRow>(
    store.sql(`SELECT arrivals.*, runs.state AS run, runs.finished_at IS NOT NULL AS finished,
        coalesce(runs.settled, 0) AS settled
      FROM arrivals LEFT JOIN runs ON runs.id = arrivals.run_id WHERE arrivals.parent_id = ? ORDER BY arrivals.id`),
    arrivalId,
  );
}

const DONE_RUN_STATES: readonly RunState[] = ["accepted", "confirmed", "empty", "opened"];
const WAITING_RUN_STATES: readonly RunState[] = ["accepted", "opened"];

/** A run at rest is finished by a step of its own; until then something is still to be done. */
function standingOf({
  state,
  run,
  finished,
  settled,
}: EntryRow): "unclaimed" | "under way" | "done" | "staying" {
  if (state === "settling") return "unclaimed";
  if (state === "duplicate") return "done";
  if (state !== "matched" || run === null) return "staying";
  const open: readonly RunState[] = OPEN_RUN_STATES;
  if (open.includes(run)) return "under way";
  if (run === "held") return "staying";
  if (finished === 1) return DONE_RUN_STATES.includes(run) ? "done" : "staying";
  return WAITING_RUN_STATES.includes(run) && settled === 1 ? "staying" : "under way";
}
