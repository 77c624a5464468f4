/** The order of runs in a lane: a run waits for earlier ones that share a target with it (invariant 7). */
import { createHash } from "node:crypto";
import type { Run } from "../../model.ts";
import type { TargetKey } from "../ledger.ts";
import { UNMAPPED_RUN_STATES } from "../states.ts";
import type { RunRow } from "./rows.ts";
import { findRun, findRunRow } from "./runs.ts";
import { DELIVERING, UNMAPPED } from "./shelves.ts";
import { cells, executeEach, row, type Steps, type Store } from "./store.ts";

/** Inside a write. */
export function recordTargets(runId: string, targets: readonly TargetKey[]): Steps<void> {
  return executeEach(
    "INSERT INTO run_targets (run_id, digest) VALUES (?, ?) ON CONFLICT DO NOTHING",
    ["text", "bigint"],
    targets.map((target) => [runId, digestOf(target)]),
  );
}

/** As `runs.target_kinds` has them. */
export function kindsOf(targets: readonly TargetKey[]): string {
  return [...new Set(targets.map(({ kind }) => kind))].sort().join(",");
}

export function digestOf({ kind, target }: TargetKey): bigint {
  return createHash("sha256").update(`${kind}\0${target}`).digest().readBigInt64LE(0);
}

export function* blockedBy(store: Store, { id }: Pick<Run, "id">): Steps<Run | null> {
  const own = yield* findRunRow(id);
  return own === null ? null : yield* inTheWayOf(store, own);
}

/** Earlier runs of a lane, as far as they have to be known. */
type Ahead = readonly [
  /** The first that is not mapped yet. */
  unmapped: string | null,
  /** Of those to deliver: how many, the first, and the first with targets of other kinds, or of several. */
  count: number,
  first: string | null,
  otherKinds: string | null,
];

/** With more runs in front, their targets are found from its own, and not one after the other from theirs. */
const FEW = 4;

/**
 * A run that this one has to wait for; the first of some, and not always of all. What is not mapped yet may share any target.
 * Targets of different kinds may name the same variable.
 */
export function* inTheWayOf(store: Store, { run: own, targetKinds }: RunRow): Steps<Run | null> {
  const { dialect } = store;
  const [ahead] = yield* cells<Ahead>(
    `SELECT (SELECT min(runs.id) FROM runs ${dialect.indexedBy("runs_unmapped")} WHERE ${UNMAPPED} AND runs.lane = ? AND runs.id < ?),
        count(*), min(runs.id),
        min(CASE WHEN runs.target_kinds <> '' AND (runs.target_kinds <> ? OR runs.target_kinds LIKE '%,%') THEN runs.id END)
      FROM runs ${dialect.indexedBy("runs_delivery")} WHERE ${DELIVERING} AND runs.lane = ? AND runs.id < ?`,
    own.lane,
    own.id,
    targetKinds,
    own.lane,
    own.id,
  );
  if (ahead === undefined) return null;
  const [unmapped, count, first, otherKinds] = ahead;
  const states: readonly string[] = UNMAPPED_RUN_STATES;
  if (states.includes(own.state)) return yield* firstOf([unmapped, first]);
  if (targetKinds === "") return yield* firstOf([unmapped]);
  if (unmapped !== null || otherKinds !== null) return yield* firstOf([unmapped, otherKinds]);
  return first === null ? null : yield* firstOf([yield* sharesTarget(store, own, first, count <= FEW)]);
}

function* firstOf(ids: readonly (string | null)[]): Steps<Run | null> {
  const [id] = ids.filter((one) => one !== null).sort();
  return id === undefined ? null : yield* findRun(id);
}

/** Of few runs each is asked for its own targets; of many, each target for its runs since the first of these, wherever they stand now. */
function* sharesTarget({ dialect }: Store, own: Run, first: string, few: boolean): Steps<string | null> {
  const found = yield* row<{ id: string }>(
    few
      ? `SELECT runs.id FROM runs ${dialect.indexedBy("runs_delivery")} WHERE ${DELIVERING} AND runs.lane = ? AND runs.id < ? AND runs.id >= ?
          AND EXISTS (SELECT 1 FROM run_targets AS own JOIN run_targets AS other ON other.digest = own.digest
            WHERE own.run_id = ? AND other.run_id = runs.id) ORDER BY runs.id LIMIT 1`
      : `SELECT runs.id FROM run_targets AS own CROSS JOIN run_targets AS other CROSS JOIN runs
          WHERE ${DELIVERING} AND runs.lane = ? AND other.digest = own.digest AND other.run_id < ? AND other.run_id >= ?
            AND own.run_id = ? AND runs.id = other.run_id LIMIT 1`,
    own.lane,
    own.id,
    first,
    own.id,
  );
  return found?.id ?? null;
}
