/** Metrics of alarms. */
import { Gauge, type Registry } from "prom-client";
import { ALARM_SEVERITIES } from "#wire/index.ts";
import type { AlarmStore } from "../store/alarms/alarms.ts";

const SHOWN_STATES = ["Present", "Acknowledged"] as const;

type Counted = Pick<AlarmStore, "counts" | "paused">;

export function registerAlarms(registry: Registry, { counts, paused }: Counted, lagMs: () => number): void {
  const registers = [registry];
  new Gauge({
    name: "headgate_hub_alarms_paused",
    help: "Alarms that rest until a person acts: they write into what they watch, or change repeatedly at one date",
    registers,
    async collect() {
      this.set(await paused());
    },
  });
  new Gauge({
    name: "headgate_hub_alarms",
    help: "Alarms that are present or acknowledged, by the severity of their template and their state",
    labelNames: ["severity", "state"],
    registers,
    async collect() {
      const found = await counts();
      // Also those of which there is none: a series that ends looks like a hub that is gone.
      for (const severity of ALARM_SEVERITIES) for (const state of SHOWN_STATES) this.set({ severity, state }, 0);
      for (const { severity, state, count } of found) this.set({ severity, state }, count);
    },
  });
  new Gauge({
    name: "headgate_hub_alarms_lag_seconds",
    help: "Age of the oldest points that this hub stored and has not judged by their alarms yet; 0 when none wait",
    registers,
    collect() {
      this.set(lagMs() / 1_000);
    },
  });
}
