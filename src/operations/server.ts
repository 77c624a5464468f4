/** The operator's HTTP interface: health, metrics, runs, and the receiver of outcome webhooks. Loopback unless configured otherwise. */
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  LogController,
} from "fastify";
import type { Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import type { RunState } from "../model.ts";
import { HeadgateError, RejectedError } from "../support/errors.ts";
import { listenOrExplain } from "../support/listen.ts";
import type { Logger } from "../support/log.ts";
import { knocksRightly } from "./door.ts";
import { exposer } from "./exposition.ts";
import type { OperationsOptions } from "./options.ts";
import type { DropState, HealthPart, WaitingFile } from "./state-of-work.ts";

export type WebhookAnswer =
  | { readonly status: "recorded" | "unknown" }
  | { readonly status: "refused"; readonly reason: string };

export interface OperationsParts {
  readonly ledger: Ledger;
  readonly log: Logger;
  readonly metrics: Registry;
  health(): Promise<readonly HealthPart[]>;
  waiting(): Promise<readonly WaitingFile[]>;
  drops(): readonly DropState[];
  receiveOutcome(body: string, signature: string | undefined): Promise<WebhookAnswer>;
  /** Orders of persons, of those alone who know the secret (`door.ts`); without it none are taken. */
  readonly orders?: {
    readonly secret: string;
    take(order: unknown): Promise<unknown>;
  };
}

export interface OperationsServer {
  /** Such as `http://127.0.0.1:9464`. */
  readonly url: string;
  close(): Promise<void>;
}

const WEBHOOK_BYTES_MAX = 4_000_000;
const RUNS_MAX = 1_000;

export async function startOperations(
  options: Omit<OperationsOptions, "reload" | "tracing">,
  parts: OperationsParts,
): Promise<OperationsServer> {
  const app = fastify({
    loggerInstance: parts.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: WEBHOOK_BYTES_MAX,
    forceCloseConnections: true,
  });
  // The signature is over the bytes as they came, so the body is not parsed here.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  addHealth(app, parts);
  addQuestions(app, parts);
  addWebhook(app, parts);
  if (parts.orders !== undefined) addOrders(app, parts.orders, parts.log);
  const url = await listenOrExplain(app, options.listen, "operations.listen");
  return { url, close: () => app.close() };
}

function addHealth(app: FastifyInstance, parts: OperationsParts): void {
  app.get("/health/live", () => ({ status: "live" }));
  app.get("/health/ready", async (_request, reply) => {
    const health = await parts.health();
    const ready = health.every((part) => part.ready);
    return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not ready", parts: health });
  });
  const expose = exposer(parts.metrics);
  app.get("/metrics", async (request, reply) => {
    const { type, text } = await expose(request.headers.accept);
    return reply.type(type).send(text);
  });
}

function addQuestions(app: FastifyInstance, parts: OperationsParts): void {
  app.get<{ Querystring: { limit?: string; state?: string } }>("/operations/runs", (request) => {
    const limit = Math.min(RUNS_MAX, Math.max(1, Number(request.query.limit ?? 50) || 50));
    const states = request.query.state?.split(",") as RunState[] | undefined;
    return parts.ledger.recentRuns(limit, states);
  });
  app.get("/operations/waiting", () => parts.waiting());
  // Without the single files, which the one above tells.
  app.get("/operations/drops", () => parts.drops().map(({ waiting: _, ...state }) => state));
  app.get<{ Params: { query: string } }>("/operations/trace/:query", async (request, reply) => {
    const found = await parts.ledger.trace(request.params.query);
    return found.length === 0
      ? problem(reply, 404, `nothing in the ledger is named ${request.params.query}`)
      : found;
  });
}

function addWebhook(app: FastifyInstance, parts: OperationsParts): void {
  app.post("/webhooks/outcome", async (request, reply) => {
    const signature = request.headers["x-headgate-signature"];
    const answer = await parts.receiveOutcome(
      String(request.body ?? ""),
      Array.isArray(signature) ? signature[0] : signature,
    );
    if (answer.status === "refused") {
      parts.log.warn({ reason: answer.reason, from: request.ip }, "a webhook was refused");
      return problem(reply, 401, answer.reason);
    }
    // An operation that is not ours is answered with success too: the sender cannot do better by trying again.
    return reply.code(200).send(answer);
  });
}

function addOrders(app: FastifyInstance, orders: NonNullable<OperationsParts["orders"]>, log: Logger): void {
  app.post("/operations/orders", async (request, reply) => {
    if (!knocksRightly(request.headers.authorization, orders.secret)) {
      log.warn({ from: request.ip }, "an order without the secret was refused");
      return problem(reply, 401, "only who may read the secret beside the ledger may order");
    }
    try {
      return await orders.take(parsed(String(request.body ?? "")));
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      const { code, operation, subject, message, hint } = thrown;
      return reply
        .code(thrown instanceof RejectedError ? 409 : 503)
        .type("application/problem+json")
        .send({ title: "cannot be done", code, operation, subject, detail: message, hint });
    }
  });
}

/** Undefined when it is no JSON. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // Whoever takes orders refuses it.
    return undefined;
  }
}

function problem(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return reply
    .code(status)
    .type("application/problem+json")
    .send({ title: "cannot be answered", status, detail });
}
