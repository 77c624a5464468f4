/** Joins those who watch what happens and change nothing: metrics, traces, and whoever the caller brings. */
import { Registry } from "prom-client";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { LedgerEvent } from "../model.ts";
import { GatewayMetrics } from "../operations/metrics.ts";
import { openTracing } from "../operations/tracing.ts";
import type { Logger } from "../support/log.ts";
import type { Tracer } from "../support/tracing.ts";
import type { Closer } from "./closers.ts";

/** An event with the file that it is about. */
export type FileEvent = LedgerEvent & { readonly drop: string; readonly path: string };

export interface Observers {
  readonly metrics: GatewayMetrics;
  readonly tracer: Tracer;
  /** Of each event, after it was committed. */
  readonly onEvent: (event: FileEvent) => void;
}

export async function openObservers(
  config: GatewayConfig,
  parts: { readonly log: Logger; readonly onEvent?: ((event: FileEvent) => void) | undefined },
  closers: Closer[],
): Promise<Observers> {
  const metrics = new GatewayMetrics(new Registry());
  const tracing = await openTracing(config.operations.tracing, parts.log);
  closers.push(() => tracing.close());
  return {
    metrics,
    tracer: tracing.tracer,
    onEvent(event) {
      metrics.count(event);
      tracing.onEvent(event);
      parts.onEvent?.(event);
    },
  };
}
