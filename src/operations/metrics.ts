/** Prometheus metrics, fed by the ledger's events: what is counted is what was committed. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { LedgerEvent, Pause } from "../model.ts";

export class GatewayMetrics {
  readonly registry: Registry;
  readonly #steps: Counter<"drop" | "event">;
  readonly #lastEvent: Gauge<"drop">;
  readonly #late: Gauge<"trigger">;
  readonly #paused: Gauge<"kind" | "name">;

  constructor(registry: Registry) {
    this.registry = registry;
    this.#steps = new Counter({
      name: "headgate_events_total",
      help: "Events of the ledger, by drop and kind (arrival.settling, run.accepted, source.archived, …)",
      labelNames: ["drop", "event"],
      registers: [registry],
    });
    this.#lastEvent = new Gauge({
      name: "headgate_last_event_timestamp_seconds",
      help: "When something last happened to a file of this drop",
      labelNames: ["drop"],
      registers: [registry],
    });
    this.#late = new Gauge({
      name: "headgate_late_file",
      help: "1 for each trigger whose expected file has not come by its time",
      labelNames: ["trigger"],
      registers: [registry],
    });
    this.#paused = new Gauge({
      name: "headgate_paused",
      help: "1 for each drop that is not polled and each trigger that claims nothing, since a person said so",
      labelNames: ["kind", "name"],
      registers: [registry],
    });
  }

  /** What a person has paused now. */
  countPauses(pauses: readonly Pause[]): void {
    this.#paused.reset();
    for (const { kind, name } of pauses) this.#paused.set({ kind, name }, 1);
  }

  /** Which triggers miss a file now. */
  countLate(triggers: readonly string[]): void {
    this.#late.reset();
    for (const trigger of triggers) this.#late.set({ trigger }, 1);
  }

  count(event: LedgerEvent & { readonly drop: string }): void {
    this.#steps.inc({ drop: event.drop, event: event.what });
    this.#lastEvent.set({ drop: event.drop }, Date.parse(event.at) / 1000);
  }
}
