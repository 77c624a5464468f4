/** The order of runs in a lane: a run waits for earlier ones that share a target with it (invariant 7). */
import { createHash } from "node:crypto";
import type { Run } from "../../model.ts";
import type { TargetKey } from "../ledger.ts";
import { UNMAPPED_RUN_STATES } from "../states.ts";
import { type RunRow, SELECT_RUN, toRun } from "./rows.ts";
import { findRunRow } from "./runs.ts";
import type { Store } from "./store.ts";

/** Inside a write: replaces what is known of the run's targets. */
export function recordTargets(store: Store, runId: string, targets: readonly TargetKey[]): void {
  const kinds = [...new Set(targets.map((target) => target.kind))].sort().join(",");
  store.sql("UPDATE runs SET target_kinds = ? WHERE id = ?").run(kinds, runId);
  store.sql("DELETE FROM run_targets WHERE run_id = ?").run(runId);
  const insert = store.sql("INSERT OR IGNORE INTO run_targets (run_id, digest) VALUES (?, ?)");
  for (const target of targets) insert.run(runId, digestOf(target));
}

export function digestOf({ kind, target }: TargetKey): bigint {
  return createHash("sha256").update(`${kind}\0${target}`).digest().readBigInt64LE(0);
}

export function blockedBy(store: Store, run: Run): Run | null {
  return store.read(() => {
    const own = findRunRow(store, run.id);
    if (own === undefined) return null;
    const earlier = store
      .sql(`${SELECT_RUN.replace("FROM runs", "FROM runs INDEXED BY runs_open")}
        WHERE runs.lane = ? AND runs.state IN ('claimed', 'fetched', 'mapping', 'mapped', 'delivering')
          AND runs.id < ?
        ORDER BY runs.id`)
      .iterate(own.lane, own.id) as Iterable<unknown> as Iterable<RunRow>;
    for (const other of earlier) if (sharesTarget(store, own, other)) return toRun(other);
    return null;
  });
}

/** What is not mapped yet may share any target. Targets of different kinds may name the same variable. */
function sharesTarget(store: Store, own: RunRow, other: RunRow): boolean {
  const unmapped: readonly string[] = UNMAPPED_RUN_STATES;
  if (unmapped.includes(other.state) || unmapped.includes(own.state)) return true;
  if (own.target_kinds === "" || other.target_kinds === "") return false;
  if (own.target_kinds !== other.target_kinds || own.target_kinds.includes(",")) return true;
  const shared = store
    .sql(`SELECT 1 FROM run_targets AS own JOIN run_targets AS other ON other.digest = own.digest
      WHERE own.run_id = ? AND other.run_id = ? LIMIT 1`)
    .get(own.id, other.id);
  return shared !== undefined;
}
