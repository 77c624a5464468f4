/**
 * Prometheus metrics of events: fed by the commits of the ledger and by push calls. Labels hold only configured names
 * and fixed words, so that their number is bounded; files and operations are found by exemplars.
 */
import {
  Counter,
  type CounterConfiguration,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  openMetricsContentType as OPEN_METRICS,
  type Registry,
  type RegistryContentType,
} from "prom-client";
import { type Clock, systemClock } from "#core/clock.ts";
import type { IsoInstant, LedgerEvent, Pause, PushFacts, Run, RunState } from "../model.ts";
import { RUN_STATES } from "../states.ts";

const RUN_LABELS = ["drop", "trigger", "mapper", "service"] as const;
type RunLabel = (typeof RUN_LABELS)[number];

interface DropCells {
  readonly events: Map<string, Cell>;
  seen: Cell | null;
  lastAt: IsoInstant;
}

/** Cells of the runs that have the same labels. */
interface RunCells {
  readonly labels: Readonly<Record<RunLabel, string>>;
  readonly states: Map<RunState, Cell>;
  readonly points: { [Kind in "mapped" | "accepted" | "confirmed" | "rejected" | "discarded"]?: Cell };
}

/** Of an exemplar's names and values together (OpenMetrics). */
const EXEMPLAR_CHARACTERS_MAX = 128;
const PUSH_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
const POLL_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

export class GatewayMetrics {
  readonly registry: Registry;
  readonly #steps: Tally<"drop" | "event">;
  readonly #seen: Tally<"drop">;
  /** Counters of each drop. */
  readonly #drops = new Map<string, DropCells>();
  readonly #late: Gauge<"trigger">;
  readonly #paused: Gauge<"kind" | "name">;
  readonly #notifications: Counter<"receiver" | "result">;
  readonly #runs: Tally<RunLabel | "state">;
  readonly #runCells = new Map<string, RunCells>();
  #lastRunCells: RunCells | null = null;
  readonly #points;
  readonly #push: Histogram<"service" | "status">;
  readonly #runningCalls: Readings<"service">;
  readonly #serviceSuccess: Readings<"service">;
  readonly #poll: Histogram<"drop" | "result">;
  readonly #pollSuccess: Readings<"drop">;
  readonly #seconds: () => number;

  constructor(registry: Registry, clock: Pick<Clock, "now"> = systemClock) {
    this.registry = registry;
    this.#seconds = () => clock.now().epochMilliseconds / 1000;
    // Exemplars need it; each response chooses its own format (`application.ts`).
    (registry as Registry<RegistryContentType>).setContentType(OPEN_METRICS);
    const registers = [registry];
    const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Tally({ name, help, registers }, labelNames);
    const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Gauge({ name, help, labelNames: [...labelNames], registers });
    const readings = <Label extends string>(name: string, help: string, label: Label) =>
      new Readings({ name, help, registers }, label);
    this.#steps = counter(
      "headgate_events_total",
      "Events of the ledger, by drop and kind (arrival.settling, run.accepted, source.archived, …)",
      ["drop", "event"],
    );
    this.#seen = counter("headgate_files_seen_total", "Files that were new at a drop, or new versions", ["drop"]);
    const drops = this.#drops;
    new Gauge({
      name: "headgate_last_event_timestamp_seconds",
      help: "When something last happened to a file of this drop",
      labelNames: ["drop"],
      registers,
      collect() {
        for (const [drop, { lastAt }] of drops) this.set({ drop }, Date.parse(lastAt) / 1000);
      },
    });
    this.#late = gauge("headgate_late_file", "1 for each trigger whose expected file has not come by its time", [
      "trigger",
    ]);
    this.#paused = gauge(
      "headgate_paused",
      "1 for each drop that is not polled and each trigger that claims nothing, since a person paused it",
      ["kind", "name"],
    );
    this.#notifications = new Counter({
      name: "headgate_notifications_total",
      help: "Notifications that were sent, by receiver and by result (accepted, failed)",
      labelNames: ["receiver", "result"],
      registers,
    });
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
      help:
        "Push calls, by the class of the answer's status (2xx, 4xx, 5xx, …) or none; exemplars name operation " +
        "and trace",
      labelNames: ["service", "status"],
      buckets: PUSH_SECONDS,
      enableExemplars: true,
      registers,
    });
    this.#runningCalls = readings("headgate_push_connections", "Connections that push calls are using now", "service");
    this.#serviceSuccess = readings(
      "headgate_service_last_success_timestamp_seconds",
      "When the service last accepted a push",
      "service",
    );
    this.#poll = new Histogram({
      name: "headgate_poll_duration_seconds",
      help: "Polls of drops that ended, by result (complete, failed)",
      labelNames: ["drop", "result"],
      buckets: POLL_SECONDS,
      registers,
    });
    this.#pollSuccess = readings(
      "headgate_drop_last_success_timestamp_seconds",
      "When a poll of the drop was last complete",
      "drop",
    );
  }

  /** Counts an ended attempt to notify a receiver. */
  countNotification(receiver: string, accepted: boolean): void {
    this.#notifications.inc({ receiver, result: accepted ? "accepted" : "failed" });
  }

  /** Counts the pauses in force. */
  countPauses(pauses: readonly Pause[]): void {
    this.#paused.reset();
    for (const { kind, name } of pauses) this.#paused.set({ kind, name }, 1);
  }

  /** Counts the triggers whose expected file is missing. */
  countLate(triggers: readonly string[]): void {
    this.#late.reset();
    for (const trigger of triggers) this.#late.set({ trigger }, 1);
  }

  count({ drop, what, at }: LedgerEvent & { readonly drop: string }): void {
    let known = this.#drops.get(drop);
    if (known === undefined) {
      known = { events: new Map(), seen: null, lastAt: at };
      this.#drops.set(drop, known);
    }
    known.lastAt = at;
    let cell = known.events.get(what);
    if (cell === undefined) {
      cell = this.#steps.cell({ drop, event: what });
      known.events.set(what, cell);
    }
    cell.value += 1;
    if (what !== "arrival.settling") return;
    known.seen ??= this.#seen.cell({ drop });
    known.seen.value += 1;
  }

  /** Counts a run whose state changed. `mappedNow`: it has batches that it did not have before. */
  countRun(run: Run, mappedNow: boolean): void {
    const { state, points } = run;
    const cells = this.#cellsOf(run);
    let cell = cells.states.get(state);
    if (cell === undefined) {
      cell = this.#runs.cell({ ...cells.labels, state });
      cells.states.set(state, cell);
    }
    cell.value += 1;
    if (mappedNow) this.#countPoints(cells, "mapped", points.mapped);
    for (const kind of RUN_STATES[state].counts)
      this.#countPoints(cells, kind === "stored" ? "confirmed" : kind, points[kind]);
  }

  #countPoints(cells: RunCells, kind: keyof RunCells["points"], by: number): void {
    cells.points[kind] ??= this.#points[kind].cell(cells.labels);
    cells.points[kind].value += by;
  }

  /** Most calls are for the same labels as the call before. */
  #cellsOf({ drop, binding }: Pick<Run, "drop" | "binding">): RunCells {
    const { trigger, mapper, service } = binding;
    const last = this.#lastRunCells?.labels;
    if (
      this.#lastRunCells !== null &&
      last?.drop === drop &&
      last.trigger === trigger &&
      last.mapper === mapper.name &&
      last.service === service
    )
      return this.#lastRunCells;
    const key = JSON.stringify([drop, trigger, mapper.name, service]);
    let cells = this.#runCells.get(key);
    if (cells === undefined) {
      const labels = { drop, trigger, mapper: mapper.name, service };
      cells = { labels, states: new Map(), points: {} };
      this.#runCells.set(key, cells);
    }
    this.#lastRunCells = cells;
    return cells;
  }

  pushBegins(service: string): void {
    this.#runningCalls.add(service, 1);
  }

  pushEnded({ service, operationId, traceId, status, seconds }: PushFacts): void {
    this.#runningCalls.add(service, -1);
    this.#push.observe({
      labels: { service, status: status === null ? "none" : `${Math.floor(status / 100)}xx` },
      value: seconds,
      exemplarLabels: exemplarOf(operationId, traceId),
    });
    if (status !== null && status >= 200 && status < 300) this.#serviceSuccess.set(service, this.#seconds());
  }

  pollEnded(drop: string, seconds: number, complete: boolean): void {
    this.#poll.observe({ drop, result: complete ? "complete" : "failed" }, seconds);
    if (complete) this.#pollSuccess.set(drop, this.#seconds());
  }
}

/** A long operation id leaves no space for the trace id. */
function exemplarOf(operationId: string, traceId: string): Record<string, string> {
  const names = "operation_id".length + "trace_id".length;
  return names + operationId.length + traceId.length <= EXEMPLAR_CHARACTERS_MAX
    ? { operation_id: operationId, trace_id: traceId }
    : { trace_id: traceId };
}

// Counters and gauges that change many times a second. Changes are added up here and passed to prom-client when the
// metrics are scraped: there each change costs the hashing and checking of all its labels.

type Facts = "name" | "help" | "registers";

/** The sum since the last scrape. */
interface Cell {
  value: number;
}

/** Cells of a counter, one for each set of labels. */
export class Tally<Label extends string> {
  readonly #cells: (Cell & { readonly labels: Readonly<Record<Label, string>> })[] = [];

  constructor(facts: Pick<CounterConfiguration<Label>, Facts>, labelNames: readonly Label[]) {
    const cells = this.#cells;
    new Counter({
      ...facts,
      labelNames: [...labelNames],
      collect() {
        for (const cell of cells) {
          this.inc(cell.labels, cell.value);
          cell.value = 0;
        }
      },
    });
  }

  /**
   * Creates the series. Keep the cell: a second call with the same labels returns another cell, which counts with it.
   */
  cell(labels: Readonly<Record<Label, string>>): Cell {
    const cell = { labels, value: 0 };
    this.#cells.push(cell);
    return cell;
  }
}

/** The last value of each name. */
export class Readings<Label extends string> {
  readonly #values = new Map<string, number>();

  constructor(facts: Pick<GaugeConfiguration<Label>, Facts>, label: Label) {
    const values = this.#values;
    new Gauge<string>({
      ...facts,
      labelNames: [label],
      collect() {
        for (const [name, value] of values) this.set({ [label]: name }, value);
      },
    });
  }

  set(name: string, value: number): void {
    this.#values.set(name, value);
  }

  add(name: string, by: number): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + by);
  }
}
