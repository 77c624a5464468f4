import { basename } from "node:path/posix";
import type { Arrival, ArrivalState } from "../../model.ts";
import type { ArrivalAge, Ledger } from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../states.ts";
import { appendEvent } from "./events.ts";
import { reopenContainer } from "./reopening.ts";
import { ARRIVAL_COLUMNS, type ArrivalCells, type ArrivalRow, arrivalOfCells, toArrival } from "./rows.ts";
import { row, rows, type Store } from "./store.ts";

type ArrivalMethods = Pick<
  Ledger,
  "arrival" | "arrivalsIn" | "settlingAges" | "advanceArrival" | "duplicateOf"
>;

const NO_LIMIT = -1;

export function arrivalMethods(store: Store): ArrivalMethods {
  return {
    arrival: async (id) => findArrival(store, id),
    arrivalsIn: async (drop, states, limit, after) =>
      arrivalsIn(store, drop, states, limit ?? NO_LIMIT, after ?? 0),
    settlingAges: async (drop, limit, after) => settlingAges(store, drop, limit, after),
    advanceArrival: (id, to, reason) =>
      store.write(`arrival.${to}`, () => {
        if (to === "matched")
          throw brokenInvariant("advance arrival", String(id), "an arrival becomes matched by openRun alone");
        return moveArrival(store, id, to, reason);
      }),
    duplicateOf: async (arrival, sha256) => duplicateOf(store, arrival, sha256),
  };
}

export function findArrival(store: Store, id: number): Arrival | null {
  const statement = store.sql(`SELECT ${ARRIVAL_COLUMNS} FROM arrivals WHERE id = ?`);
  statement.setReturnArrays(true);
  const found = row<ArrivalCells>(statement, id);
  return found === undefined ? null : arrivalOfCells(found);
}

export function mustFindArrival(store: Store, id: number): Arrival {
  const arrival = findArrival(store, id);
  if (arrival === null)
    throw brokenInvariant("find arrival", String(id), `there is no arrival ${id} in the ledger`);
  return arrival;
}

/** Inside a write. A repetition of state and reason changes nothing; another reason for the same state is no event. */
export function moveArrival(store: Store, id: number, to: ArrivalState, reason: string): Arrival {
  const arrival = mustFindArrival(store, id);
  assertTransition("arrival", id, arrival.state, to);
  if (arrival.state === to && arrival.reason === reason) return arrival;
  const now = store.now();
  store
    .sql("UPDATE arrivals SET state = ?, reason = ?, changed_at = ? WHERE id = ?")
    .run(to, reason, now, id);
  reopenContainer(store, id);
  if (arrival.state !== to)
    appendEvent(store, {
      arrivalId: id,
      runId: null,
      operationId: null,
      what: `arrival.${to}`,
      detail: reason,
    });
  return { ...arrival, state: to, reason, changedAt: now };
}

/** State by state, since each comes in the order of the index; so a limit costs no sort of the rest. */
function arrivalsIn(
  store: Store,
  drop: string,
  states: readonly ArrivalState[],
  limit: number,
  after: number,
): readonly Arrival[] {
  const statement = store.sql(
    "SELECT * FROM arrivals WHERE drop_name = ? AND state = ? AND gone_at IS NULL AND id > ? ORDER BY id LIMIT ?",
  );
  const found = store.read(() =>
    [...new Set(states)].flatMap((state) => rows<ArrivalRow>(statement, drop, state, after, limit)),
  );
  const sorted = found.map(toArrival).sort((a, b) => a.id - b.id);
  return limit === NO_LIMIT ? sorted : sorted.slice(0, limit);
}

/** Rows as arrays: as objects they cost several times as much memory, and here there may be all files of a drop. */
function settlingAges(store: Store, drop: string, limit: number, after: number): readonly ArrivalAge[] {
  const statement = store.sql(`SELECT id, path, mtime FROM arrivals
    WHERE drop_name = ? AND state = 'settling' AND gone_at IS NULL AND id > ? ORDER BY id LIMIT ?`);
  statement.setReturnArrays(true);
  const found = rows<readonly [number, string, string]>(statement, drop, after, limit);
  return found.map(([id, path, mtime]) => ({ id, path, mtime }));
}

function duplicateOf(store: Store, arrival: Arrival, sha256: string): Arrival | null {
  const found = row<ArrivalRow>(
    store.sql(`SELECT * FROM arrivals INDEXED BY arrivals_name
      WHERE name = ? AND path = ? AND drop_name = ? AND id < ? AND sha256 IS NOT NULL
        AND EXISTS (SELECT 1 FROM runs WHERE runs.arrival_id = arrivals.id
          AND (runs.state IN ('claimed', 'fetched', 'mapping', 'mapped', 'delivering', 'accepted', 'confirmed')
            OR (runs.state = 'opened' AND (runs.settled = 0 OR runs.finished_at IS NOT NULL))))
      ORDER BY id DESC LIMIT 1`),
    basename(arrival.path),
    arrival.path,
    arrival.drop,
    arrival.id,
  );
  // Only the version that was delivered last: what came back after another version is news.
  return found === undefined || found.sha256 !== sha256 ? null : toArrival(found);
}
