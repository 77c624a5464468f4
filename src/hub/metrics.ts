/** Prometheus metrics of the hub, on a separate listener: clients of the hub cannot see them. */
import { createHash, timingSafeEqual } from "node:crypto";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Gauge, Histogram, Registry } from "prom-client";
import { limitConnections, serverLimits } from "../support/connection-limits.ts";
import { listenOrExplain } from "../support/listen.ts";
import type { Logger } from "../support/log.ts";
import { type GatewayViewOf, NO_GATEWAY } from "./gateway-view.ts";
import type { HubOptions } from "./options.ts";
import type { HubStore } from "./store/store.ts";

const SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60];

export interface HubMetrics {
  /** Counts the requests of this server from now on; called before its routes are added. */
  watch(app: FastifyInstance): void;
  /** Returns the URL, or null where no listener is configured. */
  listen(): Promise<string | null>;
  close(): Promise<void>;
}

export function createMetrics(
  options: HubOptions,
  { operations }: Pick<HubStore, "operations">,
  log: Logger,
  gatewayView: GatewayViewOf = NO_GATEWAY,
): HubMetrics {
  const registry = new Registry();
  const requests = registerMetrics(registry, () => operations.counts());
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
    const parts = (await gatewayView()?.health()) ?? [];
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
    listen: async () => (listen === undefined ? null : listenOrExplain(app, listen, "metrics.listen")),
    close: () => app.close(),
  };
}

/** Returns the histogram of requests, which the caller fills. */
function registerMetrics(registry: Registry, counts: () => Promise<Counts>): Histogram<"method" | "status"> {
  const gauge = (name: string, help: string, of: keyof Counts) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set((await counts())[of]);
      },
    });
  gauge("headgate_hub_operations_pending", "Pushes that were accepted and are not applied yet", "waiting");
  gauge("headgate_hub_operations_failed", "Pushes that failed, whose bodies are kept", "failed");
  return new Histogram({
    name: "headgate_hub_request_duration_seconds",
    help: "Requests that were answered, by method and by the class of the status (2xx, 4xx, 5xx)",
    labelNames: ["method", "status"],
    buckets: SECONDS,
    registers: [registry],
  });
}

interface Counts {
  readonly waiting: number;
  readonly failed: number;
}

/** The hub's own metrics, for their reference. */
export function hubRegistry(): Registry {
  const registry = new Registry();
  registerMetrics(registry, async () => ({ waiting: 0, failed: 0 }));
  return registry;
}

/** Compares in constant time. */
function isBearer(authorization: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${token}`));
}
