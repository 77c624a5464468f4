/**
 * Finds files by the text that an operator may have: an operationId, a run, a file name, a path, a folder with a
 * slash at its end, or the beginning of an id.
 */
import { basename } from "node:path/posix";
import { cells, row, rows, type Steps } from "#core/sql/statements.ts";
import type { Ledger, TracedFile } from "../ledger.ts";
import { findArrival } from "./arrivals.ts";
import { batchesOf } from "./batches.ts";
import { eventsOf } from "./events.ts";
import { type RunCells, SELECT_RUN, toRun } from "./rows.ts";
import { rejectedRowsOf } from "./runs.ts";
import type { Dialect, Store } from "./store.ts";

/** Newest first: a name such as `data.csv` may have come every hour for years. */
const FILES_SHOWN = 50;
/** Shorter beginnings of ids would match nearly everything. */
const PREFIX_MIN = 4;
/** A shorter beginning may as well be a part of a name. */
const IDENTIFYING_MIN = 10;

/** A query of the ids of files, and its values; null for a text that it does not fit. */
type Found = readonly [sql: string, ...values: string[]] | null;
type Finder = (query: string, dialect: Dialect) => Found;

/** The first finder with a match determines the result. */
const FINDERS: readonly Finder[] = [
  byOperation,
  byRun,
  byOperationPrefix,
  byPath,
  byFolder,
  byName,
  byArchived,
  byPrefix,
];

export function traceMethods(store: Store): Pick<Ledger, "trace" | "countTraced"> {
  return {
    trace: (query, limit = FILES_SHOWN) => store.read(() => trace(store, query.trim(), limit)),
    countTraced: (query) => store.read(() => countTraced(store, query.trim())),
  };
}

function* trace({ dialect }: Store, query: string, limit: number): Steps<readonly TracedFile[]> {
  if (query === "") return [];
  for (const find of FINDERS) {
    const found = yield* idsOf(find(query, dialect), limit);
    if (found.length === 0) continue;
    const lives: TracedFile[] = [];
    for (const id of yield* withEntries(found, limit)) lives.push(...(yield* lifeOf(id)));
    return lives;
  }
  return [];
}

/** The entries of a container follow it. */
function* withEntries(found: readonly number[], limit: number): Steps<readonly number[]> {
  const sql = "SELECT id FROM arrivals WHERE parent_id = ? ORDER BY id LIMIT ?";
  const all = new Set<number>();
  for (const id of found)
    for (const one of [id, ...(yield* rows<{ id: number }>(sql, id, limit)).map((entry) => entry.id)]) all.add(one);
  return [...all].slice(0, limit);
}

function* countTraced({ dialect }: Store, query: string): Steps<number> {
  if (query === "") return 0;
  for (const find of FINDERS) {
    const found = find(query, dialect);
    if (found === null || (yield* idsOf(found, 1)).length === 0) continue;
    const [sql, ...values] = found;
    const counted = yield* row<{ count: number }>(
      `SELECT count(*) AS count FROM (SELECT id FROM (${sql}) AS found
        UNION SELECT id FROM arrivals WHERE parent_id IN (SELECT id FROM (${sql}) AS container)) AS traced`,
      ...values,
      ...values,
    );
    return Number(counted?.count ?? 0);
  }
  return 0;
}

export function* lifeOf(arrivalId: number): Steps<readonly TracedFile[]> {
  const arrival = yield* findArrival(arrivalId);
  if (arrival === null) return [];
  const found = yield* cells<RunCells>(`${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id`, arrivalId);
  const runs: TracedFile["runs"][number][] = [];
  for (const run of found.map(toRun))
    runs.push({ run, batches: yield* batchesOf(run.id), rejected: yield* rejectedRowsOf(run.id) });
  return [{ arrival, runs, events: yield* eventsOf(arrivalId) }];
}

/** By texts that identify a file for certain, and by the beginning of a run id that is long enough. */
export function* identifiedFiles(query: string, limit: number, dialect: Dialect): Steps<readonly number[]> {
  const finders: readonly Finder[] = [byOperation, byRun, byOperationPrefix];
  const isLong = query.length >= IDENTIFYING_MIN && /^[0-9a-z]+$/.test(query);
  for (const find of isLong ? [...finders, byPrefix] : finders) {
    const found = yield* idsOf(find(query, dialect), limit);
    if (found.length > 0) return found;
  }
  return [];
}

function byOperation(query: string): Found {
  return ["SELECT arrival_id AS id FROM runs WHERE id = (SELECT run_id FROM batches WHERE operation_id = ?)", query];
}

function byRun(query: string): Found {
  return ["SELECT arrival_id AS id FROM runs WHERE id = ?", query];
}

/**
 * Matches the prefix of the operation ids: the operationId that a sender gave to the HTTP intake, or that of
 * a trigger.
 */
function byOperationPrefix(query: string): Found {
  return ["SELECT arrival_id AS id FROM runs WHERE operation_prefix = ? ORDER BY runs.id DESC", query];
}

function byPath(query: string): Found {
  if (!query.includes("/")) return null;
  return ["SELECT id FROM arrivals WHERE name = ? AND path = ? ORDER BY id DESC", basename(query), query];
}

function byFolder(query: string, dialect: Dialect): Found {
  if (!query.endsWith("/")) return null;
  const sql = `SELECT id FROM arrivals WHERE parent_id IS NULL AND ${dialect.startsWith("path")} ORDER BY id DESC`;
  return [sql, query, query];
}

function byName(query: string): Found {
  return ["SELECT id FROM arrivals WHERE name = ? ORDER BY id DESC", query];
}

/** Matches the archived place: the path at its drop, or the name alone. */
function byArchived(query: string, dialect: Dialect): Found {
  const to = `'/' || ${dialect.jsonField("finish_plan", "to")}`;
  const sql = `SELECT DISTINCT arrival_id AS id FROM runs
    WHERE finish_plan IS NOT NULL AND ${dialect.contains("finish_plan")} AND ${dialect.endsWith(to)}
    ORDER BY id DESC`;
  const end = `/${query}`;
  return [sql, JSON.stringify(query).slice(1, -1), end, end];
}

function byPrefix(query: string): Found {
  if (query.length < PREFIX_MIN) return null;
  const beyond = `${query}\u{10ffff}`;
  const sql = `SELECT arrival_id AS id FROM runs WHERE id >= ? AND id < ?
    UNION
    SELECT runs.arrival_id FROM batches JOIN runs ON runs.id = batches.run_id
      WHERE operation_id >= ? AND operation_id < ?
    ORDER BY id DESC`;
  return [sql, query, beyond, query, beyond];
}

/** The first of them. */
function* idsOf(found: Found, limit: number): Steps<readonly number[]> {
  if (found === null) return [];
  const [sql, ...values] = found;
  return (yield* rows<{ id: number }>(`${sql} LIMIT ?`, ...values, limit)).map(({ id }) => id);
}
