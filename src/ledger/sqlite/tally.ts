import type { ArrivalState, FileStanding, RunState } from "../../model.ts";
import type { Ledger, Tally } from "../ledger.ts";
import { row, rows, type Store } from "./store.ts";

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

export function tallyMethods(store: Store): Pick<Ledger, "tally"> {
  return { tally: async (since) => store.read(() => tally(store, since)) };
}

function tally(store: Store, since: string): Tally {
  const files: Partial<Record<FileStanding, number>> = {};
  const drops: Record<string, number> = {};
  for (const group of groups(store, since)) {
    const standing = standingOf(group);
    files[standing] = (files[standing] ?? 0) + group.files;
    if (standing === "delivered") drops[group.drop_name] = (drops[group.drop_name] ?? 0) + group.files;
  }
  return { files, points: pointsSince(store, since), drops };
}

/** What was only seen and went again, still settling, was never worked on. For an opened container its entries count. */
function groups(store: Store, since: string): readonly Group[] {
  return rows<Group>(
    store.sql(`SELECT arrivals.drop_name, arrivals.state AS arrival, runs.state AS run, count(*) AS files
      FROM arrivals LEFT JOIN runs ON runs.id = arrivals.run_id
      WHERE arrivals.id IN (
        SELECT id FROM arrivals WHERE gone_at IS NULL
        UNION SELECT id FROM arrivals WHERE changed_at >= ? AND state <> 'settling'
        UNION SELECT arrival_id FROM runs WHERE changed_at >= ?)
        AND runs.state IS NOT 'opened'
      GROUP BY 1, 2, 3`),
    since,
    since,
  );
}

function standingOf(group: Group): FileStanding {
  if (group.arrival !== "matched") return group.arrival;
  return group.run === null ? "pending" : STANDING_OF_RUN[group.run];
}

function pointsSince(store: Store, since: string): Tally["points"] {
  const sums = row<Tally["points"]>(
    store.sql(`SELECT coalesce(sum(mapped), 0) AS mapped, coalesce(sum(accepted), 0) AS accepted,
      coalesce(sum(stored), 0) AS stored, coalesce(sum(rejected), 0) AS rejected FROM runs WHERE changed_at >= ?`),
    since,
  );
  return {
    mapped: sums?.mapped ?? 0,
    accepted: sums?.accepted ?? 0,
    stored: sums?.stored ?? 0,
    rejected: sums?.rejected ?? 0,
  };
}
