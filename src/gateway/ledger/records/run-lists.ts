/** Lists runs of certain states, and their drops or lanes, along the indexes for these states. */

import { cells, NO_LIMIT, row, rows, type Steps, type Value } from "#core/sql/statements.ts";
import type { Run, RunState } from "../../model.ts";
import type { RunFilter } from "../ledger.ts";
import { type RunCells, SELECT_RUN, toRun } from "./rows.ts";
import { literal, type RunIndex, runIndexOf } from "./run-indexes.ts";
import type { Store } from "./store.ts";

interface ListFilter extends RunFilter {
  readonly newestFirst?: boolean;
  /** Only the latest run of each arrival. */
  readonly latest?: boolean;
}

/** A condition on `runs`. */
interface Condition {
  readonly where: string;
  readonly values: readonly Value[];
}

/** State by state, since each comes in the order of its index; so a limit needs no sort of the rest. */
export function* runsIn(store: Store, states: readonly RunState[], filter: ListFilter): Steps<readonly Run[]> {
  const { limit = NO_LIMIT, newestFirst = false } = filter;
  const found: RunCells[] = [];
  let ranges = 0;
  for (const state of new Set(states))
    for (const range of yield* rangesOf(store, state, filter)) {
      ranges += 1;
      for (const one of yield* cells<RunCells>(
        `${selectRun(store, range.runIndex)} WHERE runs.state = ${literal(state)}${range.where}
ORDER BY runs.id ${newestFirst ? "DESC " : ""}LIMIT ?`,
        ...range.values,
        limit,
      ))
        found.push(one);
    }
  if (ranges > 1) found.sort((a, b) => (a[0] < b[0] !== newestFirst ? -1 : 1));
  return found.slice(0, limit).map(toRun);
}

/**
 * Ranges of runs of a state that come in the order of their ids: all of them, or drop by drop, or lane by
 * lane.
 */
function* rangesOf(
  store: Store,
  state: RunState,
  filter: ListFilter,
): Steps<readonly (Condition & { readonly runIndex: RunIndex })[]> {
  const runIndex = runIndexOf(state, filter);
  const condition = conditionOf(filter, store);
  const given = runIndex.by === "lane" ? filter.lane : filter.drop;
  if (runIndex.by === null || given !== undefined) return [{ ...condition, runIndex }];
  const names = yield* namesOf(store, state, runIndex, runIndex.by, indexCondition(filter));
  const where = `${condition.where} AND runs.${runIndex.by} = ?`;
  return names.map((name) => ({ where, values: [...condition.values, name], runIndex }));
}

/** The drops or lanes of runs in these states. */
export function* groupsOf(
  store: Store,
  states: readonly RunState[],
  by: "drop" | "lane",
  filter: RunFilter,
): Steps<readonly string[]> {
  const column = by === "drop" ? "drop_name" : "lane";
  const condition = conditionOf(filter, store);
  const names = new Set<string>();
  for (const state of states) {
    const runIndex = runIndexOf(state, filter);
    for (const name of yield* namesOf(store, state, runIndex, column, condition)) names.add(name);
  }
  return [...names];
}

/** Steps from name to name along an index that has them in order, since most names have many runs. */
function* namesOf(
  { dialect }: Store,
  state: RunState,
  runIndex: RunIndex,
  column: NonNullable<RunIndex["by"]>,
  { where, values }: Condition,
): Steps<readonly string[]> {
  const from = `FROM runs ${dialect.indexedBy(runIndex.index)} WHERE runs.state = ${literal(state)}${where}`;
  const sql =
    runIndex.by === column
      ? `WITH RECURSIVE names (name) AS (SELECT min(runs.${column}) ${from}
          UNION ALL SELECT (SELECT min(runs.${column}) ${from} AND runs.${column} > names.name)
FROM names WHERE names.name IS NOT NULL)
        SELECT name FROM names WHERE name IS NOT NULL`
      : `SELECT DISTINCT runs.${column} AS name ${from}`;
  const found = yield* rows<{ name: string }>(sql, ...values, ...(runIndex.by === column ? values : []));
  return found.map(({ name }) => name);
}

function selectRun({ dialect }: Store, { index }: RunIndex): string {
  return SELECT_RUN.replace("FROM runs", `FROM runs ${dialect.indexedBy(index)}`);
}

/** The part of the filter that is in the condition of the index. */
function indexCondition({ unfinished, unsettled }: RunFilter): Condition {
  const conditions = [
    ...(unfinished === true ? [" AND runs.finished_at IS NULL"] : []),
    ...(unsettled === true ? [" AND runs.settled = 0"] : []),
  ];
  return { where: conditions.join(""), values: [] };
}

const LATEST = "EXISTS (SELECT 1 FROM arrivals WHERE arrivals.id = runs.arrival_id AND arrivals.run_id = runs.id)";

function conditionOf(filter: ListFilter, store: Store): Condition {
  const { drop, lane, after, before, except = [], ours, latest } = filter;
  const own = ours === true ? store.ours() : { where: "", values: [] };
  const conditions = [
    ...(drop === undefined ? [] : ["runs.drop_name = ?"]),
    ...(lane === undefined ? [] : ["runs.lane = ?"]),
    ...(after === undefined ? [] : ["runs.id > ?"]),
    ...(before === undefined ? [] : ["runs.id < ?"]),
    ...(latest === true ? [LATEST] : []),
    ...(except.length === 0 ? [] : [`NOT ${store.dialect.among("runs.id")}`]),
  ];
  return {
    where: indexCondition(filter).where + conditions.map((condition) => ` AND ${condition}`).join("") + own.where,
    values: [
      ...[drop, lane, after, before].filter((value) => value !== undefined),
      ...(except.length === 0 ? [] : [JSON.stringify(except)]),
      ...own.values,
    ],
  };
}

/** Newest first. */
export function* recentRuns(
  store: Store,
  limit: number,
  states: readonly RunState[] | undefined,
  before: string | undefined,
): Steps<readonly Run[]> {
  if (states !== undefined)
    return yield* runsIn(store, states, { limit, newestFirst: true, ...(before === undefined ? {} : { before }) });
  const where = before === undefined ? "" : "WHERE runs.id < ? ";
  const values = before === undefined ? [limit] : [before, limit];
  const found = yield* cells<RunCells>(`${SELECT_RUN} ${where}ORDER BY runs.id DESC LIMIT ?`, ...values);
  return found.map(toRun);
}

const COUNTED = { all: "", awaited: " AND settled = 0", unfinished: " AND finished_at IS NULL" } as const;

export function* countRuns(
  states: readonly RunState[] | undefined,
  of: "all" | "awaited" | "unfinished",
): Steps<number> {
  if (states === undefined) return Number((yield* row<{ count: number }>("SELECT count(*) AS count FROM runs"))?.count);
  let sum = 0;
  for (const state of new Set(states)) {
    const where = `state = ${literal(state)}${COUNTED[of]}`;
    sum += Number((yield* row<{ count: number }>(`SELECT count(*) AS count FROM runs WHERE ${where}`))?.count ?? 0);
  }
  return sum;
}
