/** Prometheus metrics of the current state, read at each scrape. */
import { Gauge, type Registry } from "prom-client";
import { shareQuery } from "#core/shared-query.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { DropState, Run } from "../model.ts";
import { ATTENTION_STATES, RUN_STATES } from "../states.ts";
import {
  type HealthPart,
  isUnattended,
  measureUnfinished,
  measureUnmatched,
  type UnfinishedFiles,
} from "./state-of-work.ts";
import type { LaneWait } from "./waiting-lanes.ts";

export interface WorkSources {
  readonly ledger: Pick<Ledger, "backlog" | "restingIn" | "files">;
  drops(): readonly DropState[];
  health(): Promise<readonly HealthPart[]>;
  /** All lanes that have work. */
  lanes(): Promise<readonly LaneWait[]>;
  unfinished: UnfinishedFiles["list"];
  nowMs(): number;
}

/** Further runs are not counted. */
const RESTING_MAX = 1_000;
const WORK_LABELS = ["drop", "trigger", "mapper", "service"] as const;

export function measureWork(registry: Registry, sources: WorkSources): void {
  measureBacklog(registry, sources);
  measureLanes(registry, sources);
  measureUnmatched(registry, sources);
  measureUnfinished(registry, sources);
  const perDrop = (name: string, help: string, value: (state: DropState) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["drop"],
      registers: [registry],
      collect() {
        this.reset();
        for (const state of sources.drops()) this.set({ drop: state.drop }, value(state));
      },
    });
  perDrop(
    "headgate_files_settling",
    "Files at the drop that are not taken yet",
    ({ settlingCount, leftCount }) => settlingCount + leftCount,
  );
  perDrop(
    "headgate_files_overdue",
    "Files that have not settled for longer than the drop's limit",
    ({ overdueCount }) => overdueCount,
  );
  perDrop(
    "headgate_drop_consecutive_failures",
    "Polls of the drop that failed since the last complete one",
    ({ consecutiveFailures }) => consecutiveFailures,
  );
  new Gauge({
    name: "headgate_runs_needing_a_person",
    help: `Runs at rest that need a person, by state; counted up to ${RESTING_MAX}`,
    labelNames: ["drop", "trigger", "state"],
    registers: [registry],
    async collect() {
      this.reset();
      for (const one of await sources.ledger.restingIn(ATTENTION_STATES, RESTING_MAX))
        if (isUnattended(one)) this.inc({ drop: one.run.drop, trigger: one.run.binding.trigger, state: one.run.state });
    },
  });
  new Gauge({
    name: "headgate_ready",
    help: "1 for each part that works, 0 for one that does not; `/health/ready` has the reason",
    labelNames: ["part"],
    registers: [registry],
    async collect() {
      this.reset();
      for (const { part, ready } of await sources.health()) this.set({ part }, ready ? 1 : 0);
    },
  });
}

function measureBacklog(registry: Registry, { ledger, nowMs }: WorkSources): void {
  // Gauges are collected concurrently: each sets its own values, and they share one query.
  const query = shareQuery(() => ledger.backlog());
  new Gauge({
    name: "headgate_oldest_waiting_age_seconds",
    help: "Since when the oldest run waits that is not accepted yet, held ones included",
    labelNames: [...WORK_LABELS],
    registers: [registry],
    async collect() {
      const ages = new Map<string, { labels: Record<(typeof WORK_LABELS)[number], string>; atMs: number }>();
      const found = await query.now();
      this.reset();
      for (const { state, oldest: at, drop, trigger, mapper, service } of found) {
        if (RUN_STATES[state].isAwaited) continue;
        const labels = { drop, trigger, mapper, service };
        const key = JSON.stringify(labels);
        ages.set(key, { labels, atMs: Math.min(ages.get(key)?.atMs ?? Infinity, Date.parse(at)) });
      }
      for (const { labels, atMs } of ages.values()) this.set(labels, Math.max(0, (nowMs() - atMs) / 1000));
    },
  });
  new Gauge({
    name: "headgate_runs_waiting",
    help: "Runs in progress, held or unconfirmed, by state; accepted ones while their outcome is awaited",
    labelNames: [...WORK_LABELS, "state"],
    registers: [registry],
    async collect() {
      const found = await query.now();
      this.reset();
      for (const { state, runs, drop, trigger, mapper, service } of found)
        this.inc({ drop, trigger, mapper, service, state }, runs);
    },
  });
}

/** For several lanes with the same labels: the longest wait, and all runs behind. */
function measureLanes(registry: Registry, { lanes }: WorkSources): void {
  const query = shareQuery(lanes);
  new Gauge({
    name: "headgate_lane_wait_seconds",
    help: "Since when the first run of a lane has not moved on; counted from when it came to the front",
    labelNames: [...WORK_LABELS],
    registers: [registry],
    async collect() {
      const longest = new Map<string, number>();
      const found = await query.now();
      this.reset();
      for (const { run, waitedMs } of found) {
        const labels = laneLabels(run);
        const key = JSON.stringify(labels);
        longest.set(key, Math.max(longest.get(key) ?? 0, waitedMs));
        this.set(labels, (longest.get(key) ?? 0) / 1000);
      }
    },
  });
  new Gauge({
    name: "headgate_lane_runs_behind",
    help: "Runs that wait behind the first run of their lane, by the labels of the first run",
    labelNames: [...WORK_LABELS],
    registers: [registry],
    async collect() {
      const found = await query.now();
      this.reset();
      for (const { run, behind } of found) this.inc(laneLabels(run), behind);
    },
  });
}

function laneLabels({ drop, binding: { trigger, mapper, service } }: Run) {
  return { drop, trigger, mapper: mapper.name, service };
}

/** Runs that the guard holds before their first push, counted at each scrape. */
export function watchHeld(ledger: Pick<Ledger, "restingIn">, registry: Registry): void {
  const held = new Gauge({
    name: "headgate_held_runs",
    help: "Runs that the guard holds before their first push, by trigger and by the code of the reason",
    labelNames: ["trigger", "code"],
    registers: [registry],
    async collect() {
      held.reset();
      for (const { run } of await ledger.restingIn(["held"], RESTING_MAX))
        held.inc({ trigger: run.binding.trigger, code: run.reason?.code ?? "" });
    },
  });
}
