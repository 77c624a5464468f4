/**
 * Traces by W3C Trace Context, independent of the export (`operations/span-export.ts`). The trace id is derived from
 * the run, so that every attempt, also after a restart or on another node, is in one trace, and no id has to be
 * stored.
 */
import { hash } from "node:crypto";
import { randomHex } from "./random.ts";

type SpanAttributes = Readonly<Record<string, string | number>>;

interface SpanFacts {
  /** A verb, such as `fetch` or `push`. */
  readonly name: string;
  readonly runId: string;
  /** True when the span is a call to another system. */
  readonly isCall?: boolean;
  readonly attributes: SpanAttributes;
}

export interface OpenSpan {
  readonly traceId: string;
  /** Header `traceparent` (W3C) of calls made within the span. */
  readonly traceparent: string;
  /** A span without `end` is never exported. `fault`: the error, in words. */
  end(attributes?: SpanAttributes, fault?: string): void;
}

export interface Tracer {
  /** Whether spans are exported, so that costly attributes need not be computed otherwise. */
  readonly exports: boolean;
  begin(facts: SpanFacts): OpenSpan;
}

const TRACE_ID_DIGITS = 32;
const SPAN_ID_DIGITS = 16;

/** 32 hexadecimal digits. */
export function traceIdOf(runId: string): string {
  return digest(`trace of run ${runId}`).slice(0, TRACE_ID_DIGITS);
}

/** 16 hexadecimal digits: the span of the whole run, which is the parent of its steps. */
export function runSpanIdOf(runId: string): string {
  return digest(`span of run ${runId}`).slice(0, SPAN_ID_DIGITS);
}

export function traceparent(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** Spans are not exported; calls can be followed by their headers all the same. */
export const untraced: Tracer = {
  exports: false,
  begin({ runId }) {
    const traceId = traceIdOf(runId);
    const spanId = randomHex(SPAN_ID_DIGITS / 2);
    return { traceId, traceparent: traceparent(traceId, spanId, false), end: () => undefined };
  },
};

function digest(text: string): string {
  return hash("sha256", text);
}
