/** Metrics of the delivery of events. */
import { Gauge, type Registry } from "prom-client";
import type { DeliveryCounts } from "../store/events/deliveries.ts";

export function registerEvents(registry: Registry, counts: () => Promise<DeliveryCounts>): void {
  const gauge = (name: string, help: string, of: (counts: DeliveryCounts) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(of(await counts()));
      },
    });
  gauge(
    "headgate_hub_events_undelivered",
    "Events that the webhooks of subscriptions have not got yet, whether they fit the filters or not",
    ({ undelivered }) => undelivered,
  );
  gauge(
    "headgate_hub_event_subscriptions_paused",
    "Subscriptions whose receiver failed for too long, and that a person has to resume",
    ({ paused }) => paused,
  );
}
