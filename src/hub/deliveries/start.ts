/** Everything that leaves the hub for receivers by HTTP. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { type EventDeliveries, startEventDelivery } from "../events/delivery.ts";
import type { HubOptions } from "../options.ts";
import { startWebhooks } from "../push/webhooks.ts";
import type { HubStore } from "../store/store.ts";

export interface Deliveries {
  readonly events: EventDeliveries;
  /** Checks for outcomes and events to deliver. */
  wake(): void;
  close(): Promise<void>;
}

export function startDeliveries(
  store: HubStore,
  options: HubOptions,
  parts: { readonly log: Logger; readonly clock: Clock },
): Deliveries {
  const outcomes = startWebhooks(store, options.webhook, parts);
  const events = startEventDelivery(store, options, parts);
  return {
    events,
    wake() {
      outcomes.wake();
      events.wake();
    },
    close: async () => void (await Promise.all([outcomes.close(), events.close()])),
  };
}
