import { basename } from "node:path/posix";
import type { InvariantError } from "#core/errors.ts";
import { cells, execute, NO_LIMIT, row, rowEach, rows, type Steps } from "#core/sql/statements.ts";
import type { Arrival, ArrivalState, Run } from "../../model.ts";
import { ARRIVAL_STATES, MAY_BE_STORED_STATES, runStatesThat } from "../../states.ts";
import type { ArrivalAge, Ledger } from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../transitions.ts";
import { awaitedBefore } from "./awaited.ts";
import { releaseContainerLanes } from "./container-lanes.ts";
import { appendEvent } from "./events.ts";
import {
  ARRIVAL_COLUMNS,
  type ArrivalCells,
  type ArrivalRow,
  arrivalOfCells,
  RUN_COLUMNS,
  type RunCells,
  toArrival,
  toRun,
} from "./rows.ts";
import { literals } from "./run-indexes.ts";
import { perDialect, reopenContainer, type Store } from "./store.ts";

type ArrivalMethods = Pick<
  Ledger,
  | "arrival"
  | "arrivals"
  | "arrivalsIn"
  | "countArrivals"
  | "settlingAges"
  | "awaited"
  | "advanceArrival"
  | "unfetchedBefore"
  | "duplicateOf"
  | "noteOlderCopy"
  | "recordReturn"
  | "recordTouched"
>;

export function arrivalMethods(store: Store): ArrivalMethods {
  return {
    arrival: (id) => store.look(() => findArrival(id)),
    arrivals: (ids) => store.look(() => arrivalsById(ids)),
    arrivalsIn: (drop, states, limit, after) =>
      store.read(() => arrivalsIn(drop, states, limit ?? NO_LIMIT, after ?? 0)),
    countArrivals: (drop, states) => store.look(() => countArrivals(drop, states)),
    awaited: (drop) => store.look(() => awaitedBefore(drop)),
    settlingAges: (drop, limit, after) => store.look(() => settlingAges(drop, limit, after)),
    advanceArrival: (id, to, reason, isExpected = false) =>
      store.write(`arrival.${to}`, () => {
        if (to === "matched")
          throw brokenInvariant("advance arrival", String(id), "an arrival becomes matched by openRun alone");
        return moveArrival(store, id, to, reason, isExpected);
      }),
    unfetchedBefore: (arrival) => store.look(() => unfetchedBefore(arrival)),
    duplicateOf: (arrival, sha256) => store.look(() => duplicateOf(store, arrival, sha256)),
    noteOlderCopy: async (latestRun) =>
      !(await store.look(() => hasKnownOf(latestRun))) &&
      (await store.write("event.added", () => noteOlderCopy(latestRun))),
    recordReturn: (earlierId, laterId, reason) =>
      store.write("arrival.duplicate", () => recordReturn(store, earlierId, laterId, reason)),
    recordTouched: (id, mtime) => store.write("arrival.touched", () => recordTouched(store, id, mtime)),
  };
}

export function* findArrival(id: number): Steps<Arrival | null> {
  const [found] = yield* cells<ArrivalCells>(`SELECT ${ARRIVAL_COLUMNS} FROM arrivals WHERE id = ?`, id);
  return found === undefined ? null : arrivalOfCells(found);
}

export function* arrivalsById(ids: readonly number[]): Steps<readonly Arrival[]> {
  const found = yield* rowEach<ArrivalCells>(
    `SELECT ${ARRIVAL_COLUMNS} FROM arrivals WHERE id = ?`,
    ["bigint"],
    ids.map((id) => [id]),
  );
  return found.flatMap((one) => (one === undefined ? [] : [arrivalOfCells(one)]));
}

export function* mustFindArrival(id: number): Steps<Arrival> {
  const arrival = yield* findArrival(id);
  if (arrival === null) throw missingArrival(id);
  return arrival;
}

export function missingArrival(id: number): InvariantError {
  return brokenInvariant("find arrival", String(id), `there is no arrival ${id} in the ledger`);
}

/**
 * For use inside a write. A repetition of state and reason changes nothing; another reason for the same state
 * adds no event.
 */
function* moveArrival(store: Store, id: number, to: ArrivalState, reason: string, isExpected = false): Steps<Arrival> {
  const { isExpected: wasExpected = false, ...arrival } = yield* mustFindArrival(id);
  const expectation = isExpected ? { isExpected } : {};
  assertTransition("arrival", id, arrival.state, to);
  if (arrival.state === to && arrival.reason === reason && wasExpected === isExpected)
    return { ...arrival, ...expectation };
  const now = store.now();
  yield* execute(
    "UPDATE arrivals SET state = ?, reason = ?, changed_at = ?, expected = ? WHERE id = ?",
    ...[to, reason, now, isExpected ? 1 : 0, id],
  );
  yield* reopenContainer(id, arrival.path);
  if (arrival.parentId !== null) yield* releaseContainerLanes(arrival.parentId);
  if (arrival.state !== to)
    yield* appendEvent(
      store,
      { arrivalId: id, runId: null, operationId: null, what: `arrival.${to}`, detail: reason },
      arrival,
    );
  return { ...arrival, state: to, reason, changedAt: now, ...expectation };
}

/** The state as a literal of SQL, since the index covers only some states. Throws for any other text. */
function literal(state: ArrivalState): string {
  if (!Object.hasOwn(ARRIVAL_STATES, state))
    throw brokenInvariant("list arrivals", state, `"${state}" is no state of an arrival`);
  return `'${state}'`;
}

/** State by state, since each comes in the order of the index; so a limit needs no sort of the rest. */
function* arrivalsIn(
  drop: string,
  states: readonly ArrivalState[],
  limit: number,
  after: number,
): Steps<readonly Arrival[]> {
  const found: ArrivalRow[] = [];
  for (const state of new Set(states))
    for (const one of yield* rows<ArrivalRow>(
      `SELECT * FROM arrivals WHERE drop_name = ? AND state = ${literal(state)} AND gone_at IS NULL
AND id > ? ORDER BY id LIMIT ?`,
      drop,
      after,
      limit,
    ))
      found.push(one);
  const sorted = found.map(toArrival).sort((a, b) => a.id - b.id);
  return sorted.slice(0, limit);
}

function* countArrivals(drop: string, states: readonly ArrivalState[]): Steps<number> {
  let sum = 0;
  for (const state of new Set(states)) {
    const where = `drop_name = ? AND state = ${literal(state)} AND gone_at IS NULL`;
    const counted = yield* row<{ count: number }>(`SELECT count(*) AS count FROM arrivals WHERE ${where}`, drop);
    sum += Number(counted?.count ?? 0);
  }
  return sum;
}

/** Rows as arrays: as objects they would cost several times as much memory, for up to all files of a drop. */
function* settlingAges(drop: string, limit: number, after: number): Steps<readonly ArrivalAge[]> {
  const found = yield* cells<readonly [number, string, string]>(
    `SELECT id, path, mtime FROM arrivals
    WHERE drop_name = ? AND state = 'settling' AND gone_at IS NULL AND id > ? ORDER BY id LIMIT ?`,
    drop,
    after,
    limit,
  );
  return found.map(([id, path, mtime]) => ({ id, path, mtime }));
}

/**
 * Runs that delivered their readings, or still will. A held run resumes by itself when its structure exists.
 */
const DELIVERS = literals(runStatesThat(({ isInProgress, isDelivered }) => isInProgress || isDelivered));
/** Runs that ended before the service took every batch. */
const GIVEN_UP = literals(
  runStatesThat(({ isAtRest, isAccepted, standing }) => isAtRest && !isAccepted && standing !== "empty"),
);

/**
 * An earlier version counts when its readings, or some of them, were accepted, may have been (`sending`: the
 * response was lost), or will be. Of a discarded run only the stored readings count, so that a file can be
 * sent again once its variables exist.
 */
const selectDuplicate = perDialect(
  (dialect) => `SELECT * FROM arrivals ${dialect.indexedBy("arrivals_name")}
      WHERE name = ? AND path = ? AND drop_name = ? AND id < ? AND sha256 IS NOT NULL
        AND EXISTS (SELECT 1 FROM runs WHERE runs.arrival_id = arrivals.id
          AND (runs.state IN (${DELIVERS})
            OR (runs.state = 'opened' AND (runs.settled = 0 OR runs.finished_at IS NOT NULL))
            OR (runs.state = 'discarded' AND runs.stored > 0)
            OR (runs.state IN (${GIVEN_UP}) AND EXISTS (SELECT 1 FROM batches
              WHERE batches.run_id = runs.id AND batches.state IN (${literals(MAY_BE_STORED_STATES)})))))
      ORDER BY id DESC LIMIT 1`,
);

type FileVersion = Pick<Arrival, "id" | "drop" | "path" | "size" | "mtime">;

/** A cross join, since SQLite would search all claimed runs first; PostgreSQL chooses by itself. */
const SELECT_UNFETCHED = `SELECT ${RUN_COLUMNS} FROM arrivals CROSS JOIN runs
  JOIN bindings ON bindings.id = runs.binding_id
WHERE arrivals.name = ? AND arrivals.path = ? AND arrivals.drop_name = ? AND arrivals.id < ?
  AND arrivals.size = ? AND arrivals.mtime = ?
  AND runs.arrival_id = arrivals.id AND runs.state = 'claimed' AND runs.sha256 IS NULL
ORDER BY runs.id LIMIT 1`;

/** For use inside a write or a read. */
export function* unfetchedBefore({ id, drop, path, size, mtime }: FileVersion): Steps<Run | null> {
  const values = [basename(path), path, drop, id, size, mtime] as const;
  const [found] = yield* cells<RunCells>(SELECT_UNFETCHED, ...values);
  return found === undefined ? null : toRun(found);
}

/** For use inside a write or a read. */
export function* duplicateOf(store: Store, arrival: PlacedArrival, sha256: string): Steps<Arrival | null> {
  const found = yield* deliveredLast(store, arrival, sha256);
  return found === null || (yield* isOlderCopys(found.id, arrival.id)) ? null : found;
}

/**
 * The operation that delivered the same bytes last, as far as an older copy of the ledger knows; undefined where that
 * is certain, or unknown.
 */
export function* repeatedOfOlderCopy(store: Store, arrival: PlacedArrival, sha256: string): Steps<string | undefined> {
  const found = yield* deliveredLast(store, arrival, sha256);
  if (found === null || !(yield* isOlderCopys(found.id, arrival.id))) return undefined;
  const delivered = yield* row<{ operation_id: string | null }>(
    `SELECT max(batches.operation_id) AS operation_id FROM batches JOIN runs ON runs.id = batches.run_id
      WHERE runs.arrival_id = ? AND batches.state IN (${literals(MAY_BE_STORED_STATES)})`,
    found.id,
  );
  return delivered?.operation_id ?? "";
}

type PlacedArrival = Pick<Arrival, "id" | "drop" | "path">;

/** Only the version that was delivered last counts: content that returns after another version is new. */
function* deliveredLast(store: Store, { id, drop, path }: PlacedArrival, sha256: string): Steps<Arrival | null> {
  const found = yield* row<ArrivalRow>(selectDuplicate(store), basename(path), path, drop, id);
  return found === undefined || found.sha256 !== sha256 ? null : toArrival(found);
}

function* isOlderCopys(earlierId: number, id: number): Steps<boolean> {
  const sql = "SELECT 1 AS one FROM older_copies WHERE arrival_id >= ? AND arrival_id < ?";
  return (yield* row(sql, earlierId, id)) !== undefined;
}

/** The runs of a forgotten file leave the ledger, and may be the latest. */
function* hasKnownOf(latestRun: string): Steps<boolean> {
  const known = yield* row(
    `SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM runs WHERE id >= ?)
      OR EXISTS (SELECT 1 FROM older_copies WHERE latest_run >= ?)
      OR EXISTS (SELECT 1 FROM forgotten_files WHERE json LIKE ?)`,
    ...[latestRun, latestRun, `%"${latestRun}"%`],
  );
  return known !== undefined;
}

/** For use inside a write. Another node may have noted it meanwhile. */
function* noteOlderCopy(latestRun: string): Steps<boolean> {
  if (yield* hasKnownOf(latestRun)) return false;
  yield* execute(
    "INSERT INTO older_copies (latest_run, arrival_id) SELECT ?, coalesce(max(id), 0) FROM arrivals",
    latestRun,
  );
  return true;
}

/** For use inside a write. The later arrival leaves the drop first: only one may be at a path. */
function* recordReturn(store: Store, earlierId: number, laterId: number, reason: string): Steps<void> {
  const later = yield* moveArrival(store, laterId, "duplicate", reason);
  const now = store.now();
  yield* execute("UPDATE arrivals SET gone_at = coalesce(gone_at, ?) WHERE id = ?", now, laterId);
  yield* execute(
    "UPDATE arrivals SET gone_at = NULL, size = ?, mtime = ? WHERE id = ?",
    later.size,
    later.mtime,
    earlierId,
  );
  // The steps of its runs fetch, compare and finish the file by these values.
  yield* execute("UPDATE runs SET size = ?, mtime = ? WHERE arrival_id = ?", later.size, later.mtime, earlierId);
  const line = { arrivalId: earlierId, runId: null, operationId: null, what: "arrival.returned" };
  yield* appendEvent(store, { ...line, detail: "the same bytes are at the drop again" }, later);
}

/** For use inside a write. */
function* recordTouched(store: Store, id: number, mtime: string): Steps<void> {
  const arrival = yield* mustFindArrival(id);
  yield* execute("UPDATE arrivals SET mtime = ? WHERE id = ?", mtime, id);
  yield* execute("UPDATE runs SET mtime = ? WHERE arrival_id = ?", mtime, id);
  const line = { arrivalId: id, runId: null, operationId: null, what: "arrival.touched" };
  yield* appendEvent(store, { ...line, detail: `the file has another time, ${mtime}, and the same bytes` }, arrival);
}
