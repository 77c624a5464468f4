import type { ArrivalState, Binding, FileStanding, RunState } from "../../model.ts";
import { standingOf } from "../../states.ts";
import type { Backlog, Ledger, Tally } from "../ledger.ts";
import { RESTING, TO_DELIVER, UNMAPPED } from "./run-indexes.ts";
import { row, rows, type Steps, type Store } from "./store.ts";

interface Group {
  readonly drop_name: string;
  readonly arrival: ArrivalState;
  readonly run: RunState | null;
  readonly files: number;
}

export function tallyMethods(store: Store): Pick<Ledger, "tally" | "backlog"> {
  return {
    tally: (since) => store.read(() => tally(store, since)),
    backlog: () => store.look(() => backlog(store)),
  };
}

function* backlog({ dialect }: Store): Steps<readonly Backlog[]> {
  const found = yield* rows<{
    readonly drop_name: string;
    readonly binding: string;
    readonly state: RunState;
    readonly runs: number;
    readonly oldest: string;
  }>(
    `SELECT counted.drop_name, bindings.json AS binding, counted.state, counted.runs, counted.oldest
      FROM (${UNDER_WAY.map(
        ([index, which]) => `SELECT drop_name, binding_id, state, count(*) AS runs, min(created_at) AS oldest
          FROM runs ${dialect.indexedBy(index)} WHERE ${which} GROUP BY 1, 2, 3`,
      ).join(" UNION ALL ")}) AS counted
      JOIN bindings ON bindings.id = counted.binding_id`,
  );
  return found.map(({ drop_name: drop, binding, state, runs, oldest }) => {
    const { trigger, mapper, service } = JSON.parse(binding) as Binding;
    return { drop, trigger, mapper: mapper.name, service, state, runs, oldest };
  });
}

/** An index for each part of the runs that are in progress, held or unconfirmed, and its condition. */
const UNDER_WAY = [
  ["runs_intake", UNMAPPED],
  ["runs_delivery", TO_DELIVER],
  ["runs_unsettled", "runs.settled = 0 AND runs.state = 'accepted'"],
  ["runs_resting", "runs.state = 'unconfirmed'"],
] as const;

/** The same for all runs that changed since. */
const CHANGED = [
  ["runs_intake", UNMAPPED],
  ["runs_delivery", TO_DELIVER],
  ["runs_changed", RESTING],
] as const;

/** Takes the instant once for each part. */
function changedSince(columns: string, { dialect }: Store): string {
  return CHANGED.map(
    ([index, which]) => `SELECT ${columns} FROM runs ${dialect.indexedBy(index)} WHERE ${which} AND changed_at >= ?`,
  ).join(" UNION ALL ");
}

function* tally(store: Store, since: string): Steps<Tally> {
  const files: Partial<Record<FileStanding, number>> = {};
  const drops = new Map<string, number>();
  for (const group of yield* groups(store, since)) {
    const standing = standingOf(group.arrival, group.run) ?? "pending";
    files[standing] = (files[standing] ?? 0) + group.files;
    if (standing === "delivered") drops.set(group.drop_name, (drops.get(group.drop_name) ?? 0) + group.files);
  }
  return { files, points: yield* pointsSince(store, since), drops };
}

/**
 * An arrival that was only seen and left again, still settling, was never worked on. For an opened container
 * its entries count. An unconfirmed run counts until its outcome is known, wherever its file is.
 */
function* groups(store: Store, since: string): Steps<readonly Group[]> {
  const { dialect } = store;
  return yield* rows<Group>(
    `SELECT arrivals.drop_name, arrivals.state AS arrival, runs.state AS run, count(*) AS files
      FROM arrivals LEFT JOIN runs ON runs.id = arrivals.run_id
      WHERE arrivals.id IN (
        SELECT id FROM arrivals ${dialect.indexedBy("arrivals_lying")} WHERE gone_at IS NULL AND parent_id IS NULL
        UNION ALL SELECT id FROM arrivals ${dialect.indexedBy("arrivals_inside")}
WHERE gone_at IS NULL AND parent_id IS NOT NULL
        UNION ALL SELECT id FROM arrivals WHERE changed_at >= ? AND state <> 'settling'
        UNION ALL SELECT arrival_id FROM runs ${dialect.indexedBy("runs_resting")} WHERE runs.state = 'unconfirmed'
        UNION ALL ${changedSince("arrival_id", store)})
        AND runs.state IS DISTINCT FROM 'opened'
      GROUP BY 1, 2, 3`,
    since,
    ...CHANGED.map(() => since),
  );
}

function* pointsSince(store: Store, since: string): Steps<Tally["points"]> {
  const sums = yield* row<Tally["points"]>(
    `SELECT coalesce(sum(mapped), 0) AS mapped, coalesce(sum(accepted), 0) AS accepted,
      coalesce(sum(stored), 0) AS stored, coalesce(sum(rejected), 0) AS rejected
      FROM (${changedSince("mapped, accepted, stored, rejected", store)}) AS worked_on`,
    ...CHANGED.map(() => since),
  );
  return {
    mapped: sums?.mapped ?? 0,
    accepted: sums?.accepted ?? 0,
    stored: sums?.stored ?? 0,
    rejected: sums?.rejected ?? 0,
  };
}
