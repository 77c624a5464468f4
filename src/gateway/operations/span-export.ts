/** Spans of runs, exported by OpenTelemetry to an OTLP endpoint. A failing export never disturbs the gateway. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { runIdTimeMs } from "#core/run-id.ts";
import { runSpanIdOf, traceIdOf, traceparent } from "#core/trace-context.ts";
import type { TracingOptions } from "./options.ts";
import type { Tracing } from "./spans.ts";

/** Further spans are dropped to bound the memory. */
const QUEUE_MAX = 4_096;
const EXPORT_EVERY_MS = 2_000;
const EXPORT_TIMEOUT_MS = 5_000;
const CLOSE_WAIT_MS = 2_000;
/**
 * Events at which a run has ended, or at which only the service can report more of it. Each run passes one of them,
 * once.
 */
const ENDS = ["run.accepted", "run.quarantined", "run.empty", "run.emptied", "run.cancelled"];

export function openSpanExport(
  endpoint: string,
  options: Pick<TracingOptions, "headers" | "serviceName">,
  log: Logger,
): Tracing {
  const ids = new ChosenIds();
  const exporter = new OTLPTraceExporter({
    url: tracesUrl(endpoint),
    headers: { ...options.headers },
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    resource: resourceFromAttributes({ "service.name": options.serviceName }),
    spanProcessors: [
      new BatchSpanProcessor(loggedOnce(exporter, endpoint, log), {
        maxQueueSize: QUEUE_MAX,
        scheduledDelayMillis: EXPORT_EVERY_MS,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer("headgate");
  return {
    tracer: {
      exports: true,
      begin({ name, runId, isCall, attributes }) {
        const traceId = traceIdOf(runId);
        const parent = { traceId, spanId: runSpanIdOf(runId), traceFlags: TraceFlags.SAMPLED };
        const span = tracer.startSpan(
          name,
          {
            kind: isCall === true ? SpanKind.CLIENT : SpanKind.INTERNAL,
            attributes: { "headgate.run": runId, ...attributes },
          },
          trace.setSpanContext(ROOT_CONTEXT, parent),
        );
        return {
          traceId,
          traceparent: traceparent(traceId, span.spanContext().spanId, true),
          end(more = {}, fault) {
            span.setAttributes(more);
            if (fault !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: fault });
            span.end();
          },
        };
      },
    },
    onEvent({ runId, what, detail, at, drop, path }) {
      if (runId === null || !ENDS.includes(what)) return;
      ids.choose(traceIdOf(runId), runSpanIdOf(runId));
      const attributes = { "headgate.run": runId, "headgate.drop": drop, "headgate.path": path };
      const span = tracer.startSpan("run", {
        root: true,
        startTime: runIdTimeMs(runId),
        attributes: { ...attributes, "headgate.state": what.slice("run.".length) },
      });
      if (what === "run.quarantined") span.setStatus({ code: SpanStatusCode.ERROR, message: detail });
      span.end(Date.parse(at));
    },
    async close() {
      const ended = provider.shutdown().catch(() => undefined); // The failure was logged when it began.
      let timer: NodeJS.Timeout | undefined;
      const enough = new Promise((resolve) => {
        timer = setTimeout(resolve, CLOSE_WAIT_MS);
      });
      await Promise.race([ended, enough]);
      clearTimeout(timer);
    },
  };
}

function tracesUrl(endpoint: string): string {
  return endpoint.endsWith("/v1/traces") ? endpoint : `${endpoint.replace(/\/+$/, "")}/v1/traces`;
}

/** One warning when exporting begins to fail, and one line when it works again. */
function loggedOnce(exporter: SpanExporter, endpoint: string, log: Logger): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const fails = result.error !== undefined;
        if (fails && !isFailing)
          log.warn(
            { endpoint, reason: wordsOf(result.error) },
            "traces cannot be exported; until they can be, they are dropped",
          );
        if (!fails && isFailing) log.info({ endpoint }, "traces are exported again");
        isFailing = fails;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Random ids, but for the next span when they were chosen. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #traceId: string | null = null;
  #spanId: string | null = null;

  choose(traceId: string, spanId: string): void {
    this.#traceId = traceId;
    this.#spanId = spanId;
  }

  generateTraceId = (): string => {
    const chosen = this.#traceId ?? this.#random.generateTraceId();
    this.#traceId = null;
    return chosen;
  };

  generateSpanId = (): string => {
    const chosen = this.#spanId ?? this.#random.generateSpanId();
    this.#spanId = null;
    return chosen;
  };
}
