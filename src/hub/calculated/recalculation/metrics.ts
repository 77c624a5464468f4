/** Metrics of calculated variables. */
import { Gauge, Histogram, type Registry } from "prom-client";
import type { Clock } from "#core/clock.ts";
import { shareQuery } from "#core/shared-query.ts";
import type { CalculationCounts } from "../../store/calculated/calculations.ts";

const SECONDS = [0.05, 0.2, 1, 5, 20, 60, 300];
/** The gauges of one collection ask once. */
const SHARED_MS = 500;

/** Returns the durations, which the caller fills. */
export function registerCalculations(registry: Registry, clock: Clock, counts: () => Promise<CalculationCounts>) {
  const registers = [registry];
  const shared = shareQuery(counts);
  const gauge = (name: string, help: string, of: (counts: CalculationCounts) => number) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(of(await shared.within(SHARED_MS)));
      },
    });
  gauge(
    "headgate_hub_calculations_waiting",
    "Intervals of calculated variables that wait to be calculated",
    ({ waiting }) => waiting,
  );
  gauge(
    "headgate_hub_oldest_calculation_seconds",
    "Age of the interval that waits longest to be calculated; 0 when none waits",
    ({ oldestMs }) => (oldestMs === null ? 0 : Math.max(0, clock.now().epochMilliseconds - oldestMs) / 1_000),
  );
  gauge(
    "headgate_hub_calculations_running",
    "Calculations that run, wait for their engine, or whose outputs are being stored",
    ({ running }) => running,
  );
  gauge(
    "headgate_hub_calculations_failed",
    "Calculated variables with dates whose calculation failed, which a person has to mend",
    ({ failed }) => failed,
  );
  return new Histogram({
    name: "headgate_hub_calculation_duration_seconds",
    help: "Calculations of this hub by how they ended (done, failed, waiting)",
    labelNames: ["end"],
    buckets: SECONDS,
    registers,
  });
}
