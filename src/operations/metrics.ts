/**
 * Prometheus metrics of what happened: fed by what the ledger committed and by the calls that were made. Labels hold names of the
 * configuration and fixed words alone, so that their number is bounded; files and operations are found by exemplars.
 */
import {
  Counter,
  Gauge,
  Histogram,
  openMetricsContentType as OPEN_METRICS,
  type Registry,
  type RegistryContentType,
} from "prom-client";
import type { LedgerEvent, Pause, Run } from "../model.ts";
import { type Clock, systemClock } from "../support/clock.ts";

const RUN_LABELS = ["drop", "trigger", "mapper", "service"] as const;
type RunLabel = (typeof RUN_LABELS)[number];

/** One push call. */
export interface PushMeasured {
  readonly service: string;
  readonly operationId: string;
  readonly traceId: string;
  /** Null when no answer came. */
  readonly status: number | null;
  readonly seconds: number;
}

/** Of an exemplar's names and values together (OpenMetrics). */
const EXEMPLAR_CHARACTERS_MAX = 128;
const PUSH_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
const POLL_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

export class GatewayMetrics {
  readonly registry: Registry;
  readonly #steps: Counter<"drop" | "event">;
  readonly #seen: Counter<"drop">;
  readonly #lastEvent: Gauge<"drop">;
  readonly #late: Gauge<"trigger">;
  readonly #paused: Gauge<"kind" | "name">;
  readonly #runs: Counter<RunLabel | "state">;
  readonly #points;
  readonly #push: Histogram<"service" | "status">;
  readonly #callsUnderWay: Gauge<"service">;
  readonly #serviceSuccess: Gauge<"service">;
  readonly #poll: Histogram<"drop" | "result">;
  readonly #pollSuccess: Gauge<"drop">;
  readonly #seconds: () => number;

  constructor(registry: Registry, clock: Pick<Clock, "now"> = systemClock) {
    this.registry = registry;
    this.#seconds = () => clock.now().epochMilliseconds / 1000;
    // Exemplars need it; each answer chooses its own format (`exposition.ts`).
    (registry as Registry<RegistryContentType>).setContentType(OPEN_METRICS);
    const registers = [registry];
    const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Counter({ name, help, labelNames: [...labelNames], registers });
    const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Gauge({ name, help, labelNames: [...labelNames], registers });
    this.#steps = counter(
      "headgate_events_total",
      "Events of the ledger, by drop and kind (arrival.settling, run.accepted, source.archived, …)",
      ["drop", "event"],
    );
    this.#seen = counter("headgate_files_seen_total", "Files that were new at a drop, or new versions", [
      "drop",
    ]);
    this.#lastEvent = gauge(
      "headgate_last_event_timestamp_seconds",
      "When something last happened to a file of this drop",
      ["drop"],
    );
    this.#late = gauge(
      "headgate_late_file",
      "1 for each trigger whose expected file has not come by its time",
      ["trigger"],
    );
    this.#paused = gauge(
      "headgate_paused",
      "1 for each drop that is not polled and each trigger that claims nothing, since a person said so",
      ["kind", "name"],
    );
    this.#runs = counter("headgate_runs_total", "Runs that came to a state", [...RUN_LABELS, "state"]);
    const points = (what: string, help: string) => counter(`headgate_points_${what}_total`, help, RUN_LABELS);
    this.#points = {
      mapped: points("mapped", "Readings that were mapped and are to be sent"),
      accepted: points("accepted", "Readings that the service accepted"),
      confirmed: points("confirmed", "Readings that are known to be stored"),
      rejected: points("rejected", "Readings and rows that the mapper or the service refused"),
      discarded: points("discarded", "Readings that the service accepted and then dropped"),
    };
    this.#push = new Histogram({
      name: "headgate_push_duration_seconds",
      help: "Push calls, by the class of the answer's status (2xx, 4xx, 5xx, …) or none; exemplars name operation and trace",
      labelNames: ["service", "status"],
      buckets: PUSH_SECONDS,
      enableExemplars: true,
      registers,
    });
    this.#callsUnderWay = gauge("headgate_push_connections", "Connections that push calls are using now", [
      "service",
    ]);
    this.#serviceSuccess = gauge(
      "headgate_service_last_success_timestamp_seconds",
      "When the service last accepted a push",
      ["service"],
    );
    this.#poll = new Histogram({
      name: "headgate_poll_duration_seconds",
      help: "Polls of drops that ended, by result (complete, failed)",
      labelNames: ["drop", "result"],
      buckets: POLL_SECONDS,
      registers,
    });
    this.#pollSuccess = gauge(
      "headgate_drop_last_success_timestamp_seconds",
      "When a poll of the drop was last complete",
      ["drop"],
    );
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
    if (event.what === "arrival.settling") this.#seen.inc({ drop: event.drop });
    this.#lastEvent.set({ drop: event.drop }, Date.parse(event.at) / 1000);
  }

  /** A run that came to another state. `mappedNow`: with batches that it did not have before. */
  countRun({ drop, binding, state, points }: Run, mappedNow: boolean): void {
    const labels = {
      drop,
      trigger: binding.trigger,
      mapper: binding.mapper.name,
      service: binding.service,
    };
    this.#runs.inc({ ...labels, state });
    if (mappedNow) this.#points.mapped.inc(labels, points.mapped);
    if (state === "accepted" || state === "quarantined") this.#points.accepted.inc(labels, points.accepted);
    if (state === "accepted" || state === "quarantined" || state === "empty")
      this.#points.rejected.inc(labels, points.rejected);
    if (state === "confirmed" || state === "discarded") this.#points.confirmed.inc(labels, points.stored);
    if (state === "discarded") this.#points.discarded.inc(labels, points.discarded);
  }

  pushBegins(service: string): void {
    this.#callsUnderWay.inc({ service });
  }

  pushEnded({ service, operationId, traceId, status, seconds }: PushMeasured): void {
    this.#callsUnderWay.dec({ service });
    const exemplarLabels = exemplarOf(operationId, traceId);
    this.#push.observe({
      labels: { service, status: status === null ? "none" : `${Math.floor(status / 100)}xx` },
      value: seconds,
      exemplarLabels,
    });
    if (status !== null && status >= 200 && status < 300)
      this.#serviceSuccess.set({ service }, this.#seconds());
  }

  pollEnded(drop: string, seconds: number, complete: boolean): void {
    this.#poll.observe({ drop, result: complete ? "complete" : "failed" }, seconds);
    if (complete) this.#pollSuccess.set({ drop }, this.#seconds());
  }
}

/** A long operation id takes all the room that there is. */
function exemplarOf(operationId: string, traceId: string): Record<string, string> {
  const both = { operation_id: operationId, trace_id: traceId };
  const length = Object.entries(both).flat().join("").length;
  if (length <= EXEMPLAR_CHARACTERS_MAX) return both;
  return { trace_id: traceId };
}
