/** Finds files by what a person may hold in the hand: an operationId, a run, a file name, a path, or the beginning of an id. */
import { basename } from "node:path/posix";
import type { Ledger, TracedFile } from "../ledger.ts";
import { findArrival } from "./arrivals.ts";
import { batchesOf } from "./batches.ts";
import { eventsOf } from "./events.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { rejectedRowsOf } from "./runs.ts";
import { rows, type Store } from "./store.ts";

/** The newest of more; a name such as `data.csv` may have come every hour for years. */
const FILES_MAX = 50;
/** Shorter beginnings of ids would find everything. */
const PREFIX_MIN = 4;

type Finder = (store: Store, query: string) => readonly number[];

/** The first that finds something answers. */
const FINDERS: readonly Finder[] = [
  byOperation,
  byRun,
  byOperationPrefix,
  byPath,
  byName,
  byArchived,
  byPrefix,
];

export function traceMethods(store: Store): Pick<Ledger, "trace"> {
  return { trace: async (query) => store.read(() => trace(store, query.trim())) };
}

function trace(store: Store, query: string): readonly TracedFile[] {
  if (query === "") return [];
  for (const find of FINDERS) {
    const ids = find(store, query);
    if (ids.length > 0) return withEntries(store, ids).flatMap((id) => lifeOf(store, id));
  }
  return [];
}

/** A container is followed by its entries. */
function withEntries(store: Store, found: readonly number[]): readonly number[] {
  const sql = "SELECT id FROM arrivals WHERE parent_id = ? ORDER BY id LIMIT ?";
  const all = found.flatMap((id) => [id, ...ids(store, sql, id, FILES_MAX)]);
  return [...new Set(all)].slice(0, FILES_MAX);
}

function lifeOf(store: Store, arrivalId: number): readonly TracedFile[] {
  const arrival = findArrival(store, arrivalId);
  if (arrival === null) return [];
  const runs = rows<RunRow>(
    store.sql(`${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id`),
    arrivalId,
  ).map((found) => ({
    run: toRun(found),
    batches: batchesOf(store, found.id),
    rejected: rejectedRowsOf(store, found.id),
  }));
  return [{ arrival, runs, events: eventsOf(store, arrivalId) }];
}

function byOperation(store: Store, query: string): readonly number[] {
  const sql =
    "SELECT arrival_id AS id FROM runs WHERE id = (SELECT run_id FROM batches WHERE operation_id = ?)";
  return ids(store, sql, query);
}

function byRun(store: Store, query: string): readonly number[] {
  return ids(store, "SELECT arrival_id AS id FROM runs WHERE id = ?", query);
}

/** What stands in front of our operation ids: the operationId that a sender gave to the HTTP intake, or a trigger's own. */
function byOperationPrefix(store: Store, query: string): readonly number[] {
  const sql = `SELECT runs.arrival_id AS id FROM bindings JOIN runs ON runs.binding_id = bindings.id
    WHERE json_extract(bindings.json, '$.operationPrefix') = ? ORDER BY runs.id DESC LIMIT ?`;
  return ids(store, sql, query, FILES_MAX);
}

function byPath(store: Store, query: string): readonly number[] {
  if (!query.includes("/")) return [];
  const sql = "SELECT id FROM arrivals WHERE name = ? AND path = ? ORDER BY id DESC LIMIT ?";
  return ids(store, sql, basename(query), query, FILES_MAX);
}

function byName(store: Store, query: string): readonly number[] {
  return ids(store, "SELECT id FROM arrivals WHERE name = ? ORDER BY id DESC LIMIT ?", query, FILES_MAX);
}

/** Where it was archived to: the path at its drop, or the name alone. */
function byArchived(store: Store, query: string): readonly number[] {
  const sql = `SELECT DISTINCT arrival_id AS id FROM runs
    WHERE finish_plan IS NOT NULL AND instr(finish_plan, ?) > 0
      AND substr('/' || json_extract(finish_plan, '$.to'), -length(?)) = ?
    ORDER BY id DESC LIMIT ?`;
  const end = `/${query}`;
  return ids(store, sql, JSON.stringify(query).slice(1, -1), end, end, FILES_MAX);
}

function byPrefix(store: Store, query: string): readonly number[] {
  if (query.length < PREFIX_MIN) return [];
  const beyond = `${query}\u{10ffff}`;
  const sql = `SELECT arrival_id AS id FROM runs WHERE id >= ? AND id < ?
    UNION
    SELECT runs.arrival_id FROM batches JOIN runs ON runs.id = batches.run_id
      WHERE operation_id >= ? AND operation_id < ?
    ORDER BY id DESC LIMIT ?`;
  return ids(store, sql, query, beyond, query, beyond, FILES_MAX);
}

function ids(store: Store, sql: string, ...values: (string | number)[]): readonly number[] {
  return rows<{ id: number }>(store.sql(sql), ...values).map(({ id }) => id);
}
