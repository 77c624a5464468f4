/** The order of runs in a lane: a run waits for earlier ones that share a target with it (invariant 7). */
import { hash } from "node:crypto";
import { cells, executeEach, row, type Steps } from "#core/sql/statements.ts";
import type { Run } from "../../model.ts";
import { DELIVERABLE_STATES, RUN_STATES } from "../../states.ts";
import type { TargetKey } from "../ledger.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, type RunRow, toRunRow } from "./rows.ts";
import { DELIVERING, UNMAPPED } from "./run-indexes.ts";
import { findRun } from "./runs.ts";
import { perDialect, type Store } from "./store.ts";

/** For use inside a write. */
export function recordTargets(runId: string, targets: readonly TargetKey[]): Steps<void> {
  return executeEach(
    "INSERT INTO run_targets (run_id, digest) VALUES (?, ?) ON CONFLICT DO NOTHING",
    ["text", "bigint"],
    targets.map((target) => [runId, digestOf(target)]),
  );
}

/** The kinds in the format of `runs.target_kinds`. */
export function kindsOf(targets: readonly TargetKey[]): string {
  return [...new Set(targets.map(({ kind }) => kind))].sort().join(",");
}

export function digestOf({ kind, target }: TargetKey): bigint {
  return hash("sha256", `${kind}\0${target}`, "buffer").readBigInt64LE(0);
}

export function* blockedBy(store: Store, { id }: Pick<Run, "id">): Steps<Run | null> {
  return (yield* inTheWayOf(store, id))?.before ?? null;
}

type IdCells = readonly (string | null)[];

/**
 * Behind the first container that may have entries without runs for the lane: the earlier runs of the lane
 * that decide. First the last one that is not mapped yet; then for each of the states to deliver, so that an index
 * has them in order, the first run, the last with other kinds of targets than its own, and one behind a few.
 */
type AheadCells = readonly [unmapped: string | null, ...perState: IdCells];

/**
 * With more runs in front, the search starts from the run's own targets, and not from those of each run in
 * front.
 */
const FEW = 4;

const selectAhead = perDialect((dialect) => {
  const inFront = `runs.lane = own.lane AND runs.id < own.id`;
  const delivering = (what: string, more = "") =>
    DELIVERABLE_STATES.map(
      (state) =>
        `(SELECT ${what} FROM runs ${dialect.indexedBy("runs_delivery")}
WHERE runs.state = '${state}' AND ${inFront}${more})`,
    );
  const ahead = [
    `(SELECT min(container_lanes.run_id) FROM container_lanes
        WHERE container_lanes.lane = own.lane AND container_lanes.run_id < own.id)`,
    `(SELECT max(runs.id) FROM runs ${dialect.indexedBy("runs_unmapped")} WHERE ${UNMAPPED} AND ${inFront})`,
    ...delivering("min(runs.id)"),
    // Nearly all runs have the same kinds, so this query comes first.
    ...delivering("max(runs.id)", " AND runs.target_kinds <> own.target_kinds AND runs.target_kinds <> ''"),
    ...delivering("runs.id", ` ORDER BY runs.id LIMIT 1 OFFSET ${FEW}`),
  ];
  return `SELECT ${RUN_COLUMNS.replaceAll("runs.", "own.")}, ${ahead.join(", ")}
    FROM runs AS own JOIN bindings ON bindings.id = own.binding_id WHERE own.id = ?`;
});

/**
 * The run, and one that it has to wait for: where there are several, a late one, so that the runs of a queue wait for
 * one another, and each asks again once. A run that is not mapped yet may share any target. Targets of different kinds
 * may name the same variable. Null when there is no such run.
 */
export function* inTheWayOf(
  store: Store,
  id: string,
): Steps<{ readonly run: Run; readonly before: Run | null } | null> {
  const [found] = yield* cells<RunCells>(selectAhead(store), id);
  if (found === undefined) return null;
  const own = toRunRow(found);
  const [container, ...ahead] = found.slice(RUN_CELLS) as unknown as [string | null, ...AheadCells];
  const before = container ?? (yield* firstInTheWay(store, own, ahead));
  return { run: own.run, before: before === null ? null : yield* findRun(before) };
}

function* firstInTheWay(
  store: Store,
  { run: own, targetKinds }: RunRow,
  [unmapped, ...perState]: AheadCells,
): Steps<string | null> {
  const count = DELIVERABLE_STATES.length;
  const [firsts, lastOthers] = [perState.slice(0, count), perState.slice(count, 2 * count)];
  const many = perState.slice(2 * count);
  const first = firstOf(...firsts);
  if (RUN_STATES[own.state].index === "runs_intake") return unmapped ?? first;
  if (targetKinds === "" || (unmapped === null && first === null)) return unmapped;
  const others = targetKinds.includes(",") ? yield* lastWithTargets(store, own) : lastOf(...lastOthers);
  if (unmapped !== null || others !== null) return lastOf(unmapped, others);
  if (first === null) return null;
  return yield* sharesTarget(
    store,
    own,
    first,
    many.every((one) => one === null),
  );
}

function firstOf(...ids: readonly (string | null)[]): string | null {
  return ids.filter((id) => id !== null).sort()[0] ?? null;
}

function lastOf(...ids: readonly (string | null)[]): string | null {
  const known = ids.filter((id) => id !== null);
  return known.sort().at(-1) ?? null;
}

/** A run with several kinds waits for all runs that have targets. */
function* lastWithTargets({ dialect }: Store, own: Run): Steps<string | null> {
  const found = yield* row<{ id: string | null }>(
    `SELECT max(runs.id) AS id FROM runs ${dialect.indexedBy("runs_delivery")}
      WHERE ${DELIVERING} AND runs.lane = ? AND runs.id < ? AND runs.target_kinds <> ''`,
    own.lane,
    own.id,
  );
  return found?.id ?? null;
}

/**
 * With few runs in front, each is queried for the run's own targets; with many, each target is queried for the last of
 * its runs since the first of these, whatever their states.
 */
function* sharesTarget(store: Store, own: Run, first: string, few: boolean): Steps<string | null> {
  const sql = few ? selectOfFew(store) : SELECT_OF_MANY;
  const found = yield* row<{ id: string | null }>(sql, own.lane, own.id, first, own.id);
  return found?.id ?? null;
}

const selectOfFew = perDialect(
  (dialect) => `SELECT runs.id FROM runs ${dialect.indexedBy("runs_delivery")}
    WHERE ${DELIVERING} AND runs.lane = ? AND runs.id < ? AND runs.id >= ?
      AND EXISTS (SELECT 1 FROM run_targets AS own JOIN run_targets AS other ON other.digest = own.digest
        WHERE own.run_id = ? AND other.run_id = runs.id) ORDER BY runs.id DESC LIMIT 1`,
);

const SELECT_OF_MANY = `SELECT max((SELECT other.run_id FROM run_targets AS other CROSS JOIN runs
    WHERE runs.id = other.run_id AND ${DELIVERING} AND runs.lane = ?
      AND other.digest = own.digest AND other.run_id < ? AND other.run_id >= ?
    ORDER BY other.run_id DESC LIMIT 1)) AS id
  FROM run_targets AS own WHERE own.run_id = ?`;
