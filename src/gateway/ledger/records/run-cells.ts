/** A changed run, and the cells of its row that differ. */
import type { Points, Run, RunState } from "../../model.ts";
import type { RunChange } from "../ledger.ts";
import { execute, type Steps, type Value } from "./store.ts";

export function changed(run: Run, state: RunState, change: RunChange, changedAt: string): Run {
  return {
    ...run,
    state,
    sha256: change.sha256 ?? run.sha256,
    reason: change.reason === undefined ? run.reason : change.reason,
    points: { ...run.points, ...change.points },
    findings: change.findings ?? run.findings,
    finishPlan: run.finishPlan ?? change.finishPlan ?? null,
    finishedAt: run.finishedAt ?? change.finished?.at ?? null,
    replay: change.replay ?? run.replay,
    changedAt,
  };
}

/** Only the changed cells, since each column that is written costs the indexes that contain it. */
export function changedCells(before: Run, after: Run): Readonly<Record<string, Value>> {
  const cells: Record<string, Value> = { changed_at: after.changedAt };
  if (after.state !== before.state) cells["state"] = after.state;
  if (after.sha256 !== before.sha256) cells["sha256"] = after.sha256;
  if (after.reason !== before.reason) cells["reason"] = jsonOf(after.reason);
  if (after.findings !== before.findings && after.findings.length + before.findings.length > 0)
    cells["findings"] = listJson(after.findings);
  if (after.finishPlan !== before.finishPlan) cells["finish_plan"] = jsonOf(after.finishPlan);
  if (after.finishedAt !== before.finishedAt) cells["finished_at"] = after.finishedAt;
  if (after.replay !== before.replay) cells["replay"] = jsonOf(after.replay);
  for (const [name, points] of Object.entries(after.points) as [keyof Points, number][])
    if (points !== before.points[name]) cells[name] = points;
  return cells;
}

export function updateCells(id: string, written: Readonly<Record<string, Value>>): Steps<void> {
  const set = `${Object.keys(written).join(" = ?, ")} = ?`;
  return execute(`UPDATE runs SET ${set} WHERE id = ?`, ...Object.values(written), id);
}

/** Null for an empty list, which nearly every run has. */
function listJson(list: readonly object[]): string | null {
  return list.length === 0 ? null : JSON.stringify(list);
}

export function jsonOf(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}
