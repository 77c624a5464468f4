/** The first row of a run. */
import type { Arrival, Run } from "../../model.ts";
import { jsonOf } from "./run-cells.ts";
import { execute, type Steps } from "./store.ts";

export function newRun(
  id: string,
  {
    arrival,
    now,
    ...given
  }: Pick<Run, "binding" | "lane" | "replay"> & { readonly arrival: Arrival; readonly now: string },
): Run {
  return {
    ...given,
    id,
    arrivalId: arrival.id,
    drop: arrival.drop,
    path: arrival.path,
    size: arrival.size,
    mtime: arrival.mtime,
    sha256: arrival.sha256,
    state: "claimed",
    reason: null,
    points: { mapped: 0, accepted: 0, stored: 0, rejected: 0, discarded: 0 },
    finishPlan: null,
    finishedAt: null,
    node: null,
    confirmClock: null,
    createdAt: now,
    changedAt: now,
  };
}

/** For use inside a write. */
export function insertRun(run: Run, bindingId: number): Steps<void> {
  const { binding } = run;
  return execute(
    `INSERT INTO runs (id, arrival_id, drop_name, path, size, mtime, sha256, binding_id, lane, state,
replay, created_at, changed_at, sender, operation_prefix)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'claimed', ?, ?, ?, ?, ?)`,
    run.id,
    run.arrivalId,
    run.drop,
    run.path,
    run.size,
    run.mtime,
    run.sha256,
    bindingId,
    run.lane,
    jsonOf(run.replay),
    run.createdAt,
    run.changedAt,
    binding.sender ?? null,
    binding.operationPrefix ?? null,
  );
}
