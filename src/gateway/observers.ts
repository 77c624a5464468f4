/** Joins the observers of events, which change nothing: metrics, traces, the log, and the caller's own. */
import { Registry } from "prom-client";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { Tracer } from "#core/trace-context.ts";
import type { Closer } from "./closers.ts";
import type { GatewayConfig } from "./config.ts";
import type { LedgerEvent, Run, RunState } from "./model.ts";
import { logRunState, ServiceLog } from "./operations/attention-log.ts";
import { LiveUpdates } from "./operations/live.ts";
import { GatewayMetrics } from "./operations/metrics.ts";
import { openTracing } from "./operations/spans.ts";

/** An event with its file. */
export type FileEvent = LedgerEvent & { readonly drop: string; readonly path: string };

export interface Observers {
  readonly metrics: GatewayMetrics;
  readonly tracer: Tracer;
  /** Called for each event after it was committed. */
  readonly onEvent: (event: FileEvent) => void;
  /** Called for each run whose state changed. `mappedNow`: it has batches that it did not have before. */
  readonly onRun: (run: Run, mappedNow: boolean) => void;
  /** Called for each use of a service: `reason` says why it failed, or is null. */
  readonly onService: (service: string, reason: string | null) => void;
  readonly services: ServiceLog;
  readonly rates: WorkRates;
  readonly live: LiveUpdates;
}

const CELLS = 60;
const CELL_MS = 1_000;

export async function openObservers(
  config: GatewayConfig,
  parts: {
    readonly log: Logger;
    readonly clock: Clock;
    readonly onEvent?: ((event: FileEvent) => void) | undefined;
  },
  closers: Closer[],
): Promise<Observers> {
  const metrics = new GatewayMetrics(new Registry());
  const tracing = await openTracing(config.operations.tracing, parts.log);
  closers.push(() => tracing.close());
  const services = new ServiceLog(parts.log);
  const rates = new WorkRates(parts.clock);
  const live = new LiveUpdates(parts);
  closers.push(() => live.close());
  return {
    metrics,
    services,
    rates,
    live,
    onRun(run, mappedNow) {
      metrics.countRun(run, mappedNow);
      rates.count(run.state);
      logRunState(run, parts.log);
    },
    onService: (service, reason) => services.note(service, reason),
    tracer: tracing.tracer,
    onEvent(event) {
      metrics.count(event);
      tracing.onEvent(event);
      live.note(event);
      parts.onEvent?.(event);
    },
  };
}

/** How many runs came to a state in the last minute, on this node. */
class WorkRates {
  readonly #clock: Clock;
  readonly #cells = new Map<RunState, { readonly counts: Float64Array; atSecond: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  count(state: RunState): void {
    const { counts, atSecond } = this.#at(state);
    const cell = atSecond % CELLS;
    counts[cell] = (counts[cell] ?? 0) + 1;
  }

  perMinute(state: RunState): number {
    return this.#at(state).counts.reduce((sum, count) => sum + count, 0);
  }

  /** Empties the seconds that passed since the last call. */
  #at(state: RunState) {
    const second = Math.floor(this.#clock.monotonicMs() / CELL_MS);
    const found = this.#cells.getOrInsertComputed(state, () => ({ counts: new Float64Array(CELLS), atSecond: second }));
    for (let empty = Math.max(found.atSecond + 1, second - CELLS + 1); empty <= second; empty += 1)
      found.counts[empty % CELLS] = 0;
    found.atSecond = second;
    return found;
  }
}
