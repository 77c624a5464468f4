/** Prometheus metrics of the hub, on a separate listener: clients of the hub cannot see them. */
import { createHash, timingSafeEqual } from "node:crypto";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { type Clock, systemClock } from "#core/clock.ts";
import { limitConnections, serverLimits } from "#core/connection-limits.ts";
import type { Passwords } from "#core/sign-in/passwords.ts";
import { listenOrExplain } from "#core/start-fault.ts";
import { registerAlarms } from "./alarms/metrics.ts";
import { registerCalculations } from "./calculated/recalculation/metrics.ts";
import type { RunEnd } from "./calculated/recalculation/run.ts";
import { type GatewayViewOf, type HubContext, NO_GATEWAY } from "./context.ts";
import { registerEvents } from "./events/metrics.ts";
import type { FullDisk } from "./full-disk.ts";
import type { HubOptions } from "./options.ts";
import type { AppliedReadings } from "./push/ingestion.ts";
import type { QueueCounts } from "./store/operations.ts";
import type { HubStore } from "./store/store.ts";

const SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60];

export interface HubMetrics {
  /** Counts the requests of this server from now on; called before its routes are added. */
  watch(app: FastifyInstance): void;
  countReadings(readings: AppliedReadings): void;
  countCalculation(end: RunEnd, seconds: number): void;
  /** `lagMs`: how long points wait for the evaluation of alarms, from now on. */
  measureAlarms(lagMs: () => number): void;
  /** The same, with what is refused counted. */
  withCounts(passwords: Passwords): Passwords;
  /** Returns the URL, or null where no listener is configured. */
  listen(): Promise<string | null>;
  close(): Promise<void>;
}

export function createMetrics(
  options: HubOptions,
  store: Pick<HubStore, "operations" | "calculations" | "eventDeliveries" | "alarms">,
  { log, clock, fullDisk }: Pick<HubContext, "log" | "clock" | "fullDisk">,
  gatewayView: GatewayViewOf = NO_GATEWAY,
): HubMetrics {
  const registry = new Registry();
  const { requests, readings, refused } = registerMetrics(registry, clock, () => store.operations.counts());
  const durations = registerCalculations(registry, clock, () => store.calculations.counts());
  registerEvents(registry, () => store.eventDeliveries.counts());
  registerFullDisk(registry, () => fullDisk.state());
  let alarmLagMs = () => 0;
  registerAlarms(
    registry,
    { counts: () => store.alarms.alarms.counts(), paused: () => store.alarms.alarms.paused() },
    () => alarmLagMs(),
  );
  const app = Fastify({ forceCloseConnections: true, http: serverLimits(options.http) });
  limitConnections(app, options.http, log);
  const { listen, token } = options.metrics;
  app.get("/health", () => ({ status: "ok" }));
  const guarded = async ({ headers }: FastifyRequest, reply: FastifyReply) => {
    if (token !== undefined && !isBearer(headers.authorization, token))
      await reply.code(401).header("www-authenticate", "Bearer").send({ title: "Unauthorized", status: 401 });
  };
  app.get("/metrics", { onRequest: guarded }, async (_request, reply) => {
    const parts = await Promise.all([registry.metrics(), gatewayView()?.metrics() ?? ""]);
    return reply.type(registry.contentType).send(parts.join("\n"));
  });
  app.get("/health/ready", { onRequest: guarded }, async (_request, reply) => {
    const full = await fullDisk.state();
    const store = full === null ? [] : [{ part: "store", ready: false, reason: `${full.reason}, since ${full.since}` }];
    const parts = [...store, ...((await gatewayView()?.health()) ?? [])];
    const ready = parts.every((part) => part.ready);
    return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not ready", parts });
  });
  return {
    watch(server) {
      server.addHook("onResponse", async (request, reply) => {
        const status = `${Math.floor(reply.statusCode / 100)}xx`;
        requests.observe({ method: request.method, status }, reply.elapsedTime / 1000);
      });
    },
    countReadings({ stored, discarded }) {
      readings.inc({ end: "stored" }, stored);
      readings.inc({ end: "discarded" }, discarded);
    },
    countCalculation(end, seconds) {
      if (end !== "lost") durations.observe({ end }, seconds);
    },
    measureAlarms(lagMs) {
      alarmLagMs = lagMs;
    },
    withCounts: (passwords) => ({
      ...passwords,
      async check(...attempt) {
        const verdict = await passwords.check(...attempt);
        if (verdict.kind !== "right") refused.inc({ reason: REASON_OF[verdict.kind] });
        return verdict;
      },
    }),
    listen: async () => (listen === undefined ? null : listenOrExplain(app, listen, "metrics.listen")),
    close: () => app.close(),
  };
}

const REASON_OF = { wrong: "wrong", later: "throttled" } as const;

function registerFullDisk(registry: Registry, stateOf: FullDisk["state"]): void {
  new Gauge({
    name: "headgate_hub_disk_full",
    help: "1 while the disk of this hub is full, so that nothing is stored; else 0",
    registers: [registry],
    async collect() {
      this.set((await stateOf()) === null ? 0 : 1);
    },
  });
}

/** Returns those that the caller fills. */
function registerMetrics(registry: Registry, clock: Clock, counts: () => Promise<QueueCounts>) {
  const registers = [registry];
  const gauge = (name: string, help: string, of: (counts: QueueCounts) => number) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(of(await counts()));
      },
    });
  gauge(
    "headgate_hub_operations_pending",
    "Pushes that were accepted and are not applied yet",
    ({ waiting }) => waiting,
  );
  gauge("headgate_hub_operations_failed", "Pushes that failed, whose bodies are kept", ({ failed }) => failed);
  gauge(
    "headgate_hub_oldest_pending_seconds",
    "Age of the push that waits longest to be applied; 0 when none waits",
    ({ oldestMs }) => (oldestMs === null ? 0 : Math.max(0, clock.now().epochMilliseconds - oldestMs) / 1_000),
  );
  gauge(
    "headgate_hub_webhooks_due",
    "Outcomes that are still to be delivered to the webhook of their push",
    ({ webhooks }) => webhooks,
  );
  const readings = new Counter({
    name: "headgate_hub_readings_total",
    help: "Readings of pushes that this hub applied, by what became of them (stored, discarded)",
    labelNames: ["end"],
    registers,
  });
  const refused = new Counter({
    name: "headgate_hub_sign_ins_refused_total",
    help: "Passwords and client secrets that were refused: wrong, or not compared since too many came (throttled)",
    labelNames: ["reason"],
    registers,
  });
  for (const end of ["stored", "discarded"]) readings.inc({ end }, 0);
  for (const reason of Object.values(REASON_OF)) refused.inc({ reason }, 0);
  const requests = new Histogram({
    name: "headgate_hub_request_duration_seconds",
    help: "Requests that were answered, by method and by the class of the status (2xx, 4xx, 5xx)",
    labelNames: ["method", "status"],
    buckets: SECONDS,
    registers,
  });
  return { requests, readings, refused };
}

/** The hub's own metrics, for their reference. */
export function hubRegistry(): Registry {
  const registry = new Registry();
  registerMetrics(registry, systemClock, async () => ({ waiting: 0, failed: 0, webhooks: 0, oldestMs: null }));
  registerCalculations(registry, systemClock, async () => ({ waiting: 0, oldestMs: null, running: 0, failed: 0 }));
  registerEvents(registry, async () => ({ undelivered: 0, paused: 0 }));
  registerFullDisk(registry, async () => null);
  registerAlarms(registry, { counts: async () => [], paused: async () => 0 }, () => 0);
  return registry;
}

/** Compares in constant time. */
function isBearer(authorization: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${token}`));
}
