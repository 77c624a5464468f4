/** The order of runs in a lane: a run waits for earlier ones that share a target with it (invariant 7). */
import { createHash } from "node:crypto";
import type { Run } from "../../model.ts";
import type { TargetKey } from "../ledger.ts";
import { UNMAPPED_RUN_STATES } from "../states.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { findRunRow } from "./runs.ts";
import { executeEach, row, type Steps, type Store } from "./store.ts";

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
  return own === undefined ? null : yield* inTheWayOf(store, own);
}

/** What is not mapped yet may share any target. Targets of different kinds may name the same variable. */
export function* inTheWayOf({ dialect }: Store, own: RunRow): Steps<Run | null> {
  const unmapped: readonly string[] = UNMAPPED_RUN_STATES;
  const select = `${SELECT_RUN.replace("FROM runs", `FROM runs ${dialect.indexedBy("runs_open")}`)}
    WHERE runs.lane = ? AND runs.state IN ('claimed', 'fetched', 'mapping', 'mapped', 'delivering') AND runs.id < ?`;
  const order = "ORDER BY runs.id LIMIT 1";
  const first = unmapped.includes(own.state)
    ? yield* row<RunRow>(`${select} ${order}`, own.lane, own.id)
    : yield* row<RunRow>(
        `${select} AND (runs.state IN ('claimed', 'fetched', 'mapping') OR (runs.target_kinds <> '' AND ? <> ''
          AND (runs.target_kinds <> ? OR runs.target_kinds LIKE '%,%' OR EXISTS (SELECT 1 FROM run_targets AS own
            JOIN run_targets AS other ON other.digest = own.digest
            WHERE own.run_id = ? AND other.run_id = runs.id)))) ${order}`,
        own.lane,
        own.id,
        own.target_kinds,
        own.target_kinds,
        own.id,
      );
  return first === undefined ? null : toRun(first);
}
