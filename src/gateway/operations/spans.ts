/** Traces of the gateway: spans that are exported where that is configured, and nothing where it is not. */
import type { Logger } from "#core/log.ts";
import { type Tracer, untraced } from "#core/trace-context.ts";
import type { LedgerEvent } from "../model.ts";
import type { TracingOptions } from "./options.ts";

const NO_TRACING: Tracing = { tracer: untraced, onEvent: () => undefined, close: async () => undefined };

export interface Tracing {
  readonly tracer: Tracer;
  /** The span of a run is reported when the run has ended. */
  onEvent(event: LedgerEvent & { readonly drop: string; readonly path: string }): void;
  /** Spans that wait to be exported get a short time. */
  close(): Promise<void>;
}

/** Without an endpoint nothing is exported, and the 200 modules that export are not loaded. */
export async function openTracing(options: TracingOptions, log: Logger): Promise<Tracing> {
  if (options.endpoint === undefined) return NO_TRACING;
  const { openSpanExport } = await import("./span-export.ts");
  return openSpanExport(options.endpoint, options, log);
}
