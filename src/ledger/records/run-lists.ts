/** Runs of certain states, and what they belong to, along the indexes that are made for that. */
import type { Run, RunState } from "../../model.ts";
import type { RunFilter } from "../ledger.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { NO_LIMIT, rows, type Steps, type Store, type Value } from "./store.ts";

/** State by state, since each comes in the order of its index; so a limit costs no sort of the rest. */
export function* runsIn(store: Store, states: readonly RunState[], filter: RunFilter): Steps<readonly Run[]> {
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
export function* groupsOf(
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
  { unfinished, unsettled, drop, lane, after, except = [], ours }: RunFilter,
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
    ...(except.length === 0 ? [] : [`NOT ${store.dialect.among("runs.id")}`]),
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
    values: [
      ...[drop, lane, after].filter((value) => value !== undefined),
      ...(except.length === 0 ? [] : [JSON.stringify(except)]),
      ...own.values,
    ],
  };
}
