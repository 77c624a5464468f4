/** Work of the hub beside requests: it applies operations, calculates, sends outcomes, purges, and finishes forms. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { type Recalculation, startRecalculation } from "./calculated/recalculation/recalculation.ts";
import { RollupBuilder } from "./data/rollups/builder.ts";
import { type Deliveries, startDeliveries } from "./deliveries/start.ts";
import { finishForms } from "./forms/unfinished.ts";
import type { HubMetrics } from "./metrics.ts";
import type { HubOptions } from "./options.ts";
import { startPurge } from "./purge.ts";
import { type Ingestion, startIngestion } from "./push/ingestion.ts";
import type { HubStore } from "./store/store.ts";

interface Background {
  readonly deliveries: Deliveries;
  readonly ingestion: Ingestion;
  readonly recalculation: Recalculation;
}

export interface BackgroundParts {
  readonly options: HubOptions;
  readonly store: HubStore;
  readonly log: Logger;
  readonly clock: Clock;
  /** A fault point to arm in the threads; null: none. */
  readonly fault: string | null;
  readonly metrics: HubMetrics;
  /** Ends what was started, the last first. */
  readonly stops: (() => Promise<void>)[];
}

export function startBackground({ metrics, stops, ...base }: BackgroundParts): Background {
  const { options, store, log, clock } = base;
  const deliveries = startDeliveries(store, options, { log, clock });
  stops.push(() => deliveries.close());
  const ingestion = startIngestion({
    ...base,
    operations: store.operations,
    onApplied: metrics.countReadings,
    onFinished: deliveries.wake,
    onEffects: ({ due }) => {
      if (due.length > 0) recalculation.wake();
    },
  });
  stops.push(() => ingestion.close());
  const recalculation = startRecalculation({
    ...base,
    ingestion,
    onEnded(end, seconds) {
      metrics.countCalculation(end, seconds);
      deliveries.wake();
    },
  });
  stops.push(() => recalculation.close());
  const rollups = new RollupBuilder({ points: store.points, log, clock });
  stops.push(() => rollups.close());
  stops.push(startPurge(store, options, log, clock));
  stops.push(finishForms(store, log, clock));
  return { deliveries, ingestion, recalculation };
}
