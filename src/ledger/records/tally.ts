import type { ArrivalState, Binding, FileStanding, RunState } from "../../model.ts";
import type { Backlog, Ledger, Tally } from "../ledger.ts";
import { row, rows, type Steps, type Store } from "./store.ts";

const STANDING_OF_RUN: Readonly<Record<Exclude<RunState, "opened">, FileStanding>> = {
  claimed: "pending",
  fetched: "pending",
  mapping: "pending",
  mapped: "pending",
  delivering: "pending",
  accepted: "delivered",
  confirmed: "delivered",
  empty: "empty",
  held: "held",
  discarded: "discarded",
  quarantined: "quarantined",
  cancelled: "cancelled",
};

interface Group {
  readonly drop_name: string;
  readonly arrival: ArrivalState;
  readonly run: Exclude<RunState, "opened"> | null;
  readonly files: number;
}

export function tallyMethods(store: Store): Pick<Ledger, "tally" | "backlog"> {
  return {
    tally: (since) => store.read(() => tally(since)),
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
      FROM (SELECT drop_name, binding_id, state, count(*) AS runs, min(created_at) AS oldest FROM runs
        WHERE ${dialect.among("state")} OR (state = 'accepted' AND settled = 0) GROUP BY 1, 2, 3) AS counted
      JOIN bindings ON bindings.id = counted.binding_id`,
    JSON.stringify(UNDER_WAY),
  );
  return found.map(({ drop_name: drop, binding, state, runs, oldest }) => {
    const { trigger, mapper, service } = JSON.parse(binding) as Binding;
    return { drop, trigger, mapper: mapper.name, service, state, runs, oldest };
  });
}

const UNDER_WAY: readonly RunState[] = ["claimed", "fetched", "mapping", "mapped", "delivering", "held"];

function* tally(since: string): Steps<Tally> {
  const files: Partial<Record<FileStanding, number>> = {};
  const drops: Record<string, number> = {};
  for (const group of yield* groups(since)) {
    const standing = standingOf(group);
    files[standing] = (files[standing] ?? 0) + group.files;
    if (standing === "delivered") drops[group.drop_name] = (drops[group.drop_name] ?? 0) + group.files;
  }
  return { files, points: yield* pointsSince(since), drops };
}

/** What was only seen and went again, still settling, was never worked on. For an opened container its entries count. */
function* groups(since: string): Steps<readonly Group[]> {
  return yield* rows<Group>(
    `SELECT arrivals.drop_name, arrivals.state AS arrival, runs.state AS run, count(*) AS files
      FROM arrivals LEFT JOIN runs ON runs.id = arrivals.run_id
      WHERE arrivals.id IN (
        SELECT id FROM arrivals WHERE gone_at IS NULL
        UNION SELECT id FROM arrivals WHERE changed_at >= ? AND state <> 'settling'
        UNION SELECT arrival_id FROM runs WHERE changed_at >= ?)
        AND runs.state IS DISTINCT FROM 'opened'
      GROUP BY 1, 2, 3`,
    since,
    since,
  );
}

function standingOf(group: Group): FileStanding {
  if (group.arrival !== "matched") return group.arrival;
  return group.run === null ? "pending" : STANDING_OF_RUN[group.run];
}

function* pointsSince(since: string): Steps<Tally["points"]> {
  const sums = yield* row<Tally["points"]>(
    `SELECT coalesce(sum(mapped), 0) AS mapped, coalesce(sum(accepted), 0) AS accepted,
      coalesce(sum(stored), 0) AS stored, coalesce(sum(rejected), 0) AS rejected FROM runs WHERE changed_at >= ?`,
    since,
  );
  return {
    mapped: sums?.mapped ?? 0,
    accepted: sums?.accepted ?? 0,
    stored: sums?.stored ?? 0,
    rejected: sums?.rejected ?? 0,
  };
}
