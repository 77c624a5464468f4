import type { RunState } from "../../model.ts";
import { ALL_RUN_STATES, ASIDE_STATES, DELIVERABLE_STATES, LEAVES_LANE_STATES } from "../../states.ts";
import type { LaneHead, LaneHeads } from "../lane-heads.ts";
import { RESTING, UNMAPPED } from "./run-indexes.ts";
import { findRun } from "./runs.ts";
import { perDialect, row, rows, type Steps, type Store } from "./store.ts";

/** Number of earlier runs of a lane that are checked: those that changed last. */
const EARLIER_MAX = 20;

export function laneHeads(store: Store): LaneHeads {
  return {
    list: () => store.read(() => listHeads(store)),
    movedAt: (run) =>
      store.look(function* () {
        const found = yield* row<{ at: string | null }>(MOVED_AT, run.arrivalId, run.id);
        return found?.at ?? run.createdAt;
      }),
    aheadLeftAt: ({ lane, run }, since) =>
      store.look(function* () {
        const earlier = Array.from({ length: 1 + ASIDE_STATES.length }, () => [lane, run.id, since]).flat();
        const found = yield* row<{ at: string | null }>(selectLeft(store), ...earlier, since);
        return found?.at ?? null;
      }),
  };
}

const selectHeads = perDialect(({ indexedBy }) => {
  const group = (index: string, which: string, waiting: string) =>
    `SELECT lane, min(id) AS head, ${waiting} AS waiting FROM runs ${indexedBy(index)} WHERE ${which} GROUP BY lane`;
  const inState = (state: RunState) =>
    group("runs_delivery", `runs.state = '${state}'`, state === "delivering" ? "0" : "count(*)");
  return `SELECT fronts.lane, fronts.head, fronts.waiting, (SELECT min(container_lanes.run_id) FROM container_lanes
      WHERE container_lanes.lane = fronts.lane AND container_lanes.run_id < fronts.head) AS container
    FROM (SELECT lane, min(head) AS head, CAST(sum(waiting) AS bigint) AS waiting
      FROM (${group("runs_unmapped", UNMAPPED, "count(*)")}
        ${DELIVERABLE_STATES.map((state) => `UNION ALL ${inState(state)}`).join("\n        ")}) AS parts
      GROUP BY lane) AS fronts ORDER BY fronts.head`;
});

function* listHeads(store: Store): Steps<readonly LaneHead[]> {
  const fronts = yield* rows<{ lane: string; head: string; waiting: number; container: string | null }>(
    selectHeads(store),
  );
  const heads: LaneHead[] = [];
  for (const { lane, head, waiting, container } of fronts) {
    const run = yield* findRun(container ?? head);
    if (run === null) continue;
    const isCounted = container === null && run.state !== "delivering";
    heads.push({ lane, run, behind: waiting - (isCounted ? 1 : 0) });
  }
  return heads;
}

const STATES_COME = ALL_RUN_STATES.map((state) => `'run.${state}'`);

const MOVED_AT = `SELECT max(at) AS at FROM events
  WHERE arrival_id = ? AND run_id = ? AND what IN (${STATES_COME.join(", ")}, 'batch.accepted')`;

/** The events by which a run leaves the front of its lane. */
const LEAVES = LEAVES_LANE_STATES.map((state) => `'run.${state}'`);

/** A run also changes after it left, such as when it is confirmed, so its events determine when it left. */
const selectLeft = perDialect(({ indexedBy }) => {
  const latest = (index: string, which: string) =>
    `SELECT * FROM (SELECT id, arrival_id FROM runs ${indexedBy(index)}
      WHERE ${which} AND lane = ? AND id < ? AND changed_at > ? ORDER BY changed_at DESC LIMIT ${EARLIER_MAX})`;
  const aside = ASIDE_STATES.map((state) => `${latest("runs_delivery", `runs.state = '${state}'`)} AS ${state}`);
  return `SELECT max(events.at) AS at
    FROM (${[`${latest("runs_changed", RESTING)} AS rested`, ...aside].join("\nUNION ALL ")}) AS earlier
    JOIN events ON events.arrival_id = earlier.arrival_id AND events.run_id = earlier.id
    WHERE events.at > ? AND events.what IN (${LEAVES.join(", ")})`;
});
