/** Prometheus metrics of what there is now, asked for at each look. */
import { Gauge, type Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import { type DropState, type HealthPart, NEEDS_A_PERSON } from "./state-of-work.ts";

export interface WorkSources {
  readonly ledger: Pick<Ledger, "backlog" | "restingIn">;
  drops(): readonly DropState[];
  health(): Promise<readonly HealthPart[]>;
  nowMs(): number;
}

/** More are counted as so many. */
const RESTING_MAX = 1_000;
const WORK_LABELS = ["drop", "trigger", "mapper", "service"] as const;

export function measureWork(registry: Registry, sources: WorkSources): void {
  measureBacklog(registry, sources);
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
    help: `Runs at rest that a person has to see to, by state; counted up to ${RESTING_MAX}`,
    labelNames: ["drop", "trigger", "state"],
    registers: [registry],
    async collect() {
      this.reset();
      for (const { run, arrival } of await sources.ledger.restingIn(NEEDS_A_PERSON, RESTING_MAX))
        if (arrival.goneAt === null)
          this.inc({ drop: run.drop, trigger: run.binding.trigger, state: run.state });
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
  const oldest = new Gauge({
    name: "headgate_oldest_waiting_age_seconds",
    help: "Since when the oldest run waits that is not accepted yet, held ones included",
    labelNames: [...WORK_LABELS],
    registers: [registry],
  });
  new Gauge({
    name: "headgate_runs_waiting",
    help: "Runs on their way or held, by state; accepted ones while their outcome is awaited",
    labelNames: [...WORK_LABELS, "state"],
    registers: [registry],
    async collect() {
      const ages = new Map<string, { labels: Record<(typeof WORK_LABELS)[number], string>; atMs: number }>();
      const found = await ledger.backlog();
      this.reset();
      oldest.reset();
      for (const { state, runs, oldest: at, drop, trigger, mapper, service } of found) {
        const labels = { drop, trigger, mapper, service };
        this.inc({ ...labels, state }, runs);
        if (state === "accepted") continue;
        const key = JSON.stringify(labels);
        ages.set(key, { labels, atMs: Math.min(ages.get(key)?.atMs ?? Infinity, Date.parse(at)) });
      }
      for (const { labels, atMs } of ages.values()) oldest.set(labels, Math.max(0, (nowMs() - atMs) / 1000));
    },
  });
}
