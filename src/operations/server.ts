/**
 * The operations API: health, metrics, runs, and the receiver of outcome webhooks. Loopback unless configured
 * otherwise.
 */
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import type { Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import type { DropState } from "../model.ts";
import { limitConnections, serverLimits } from "../support/connection-limits.ts";
import { parsedJson } from "../support/decoded-text.ts";
import { HeadgateError, RejectedError } from "../support/errors.ts";
import { type HttpLimits, httpOptions } from "../support/http-options.ts";
import { listenOrExplain } from "../support/listen.ts";
import type { Logger } from "../support/log.ts";
import { createRareWarning } from "../support/rare-warnings.ts";
import { masked } from "../support/secrets.ts";
import { shareQuery } from "../support/shared-query.ts";
import { type Access, installAccess } from "./access.ts";
import { openApi } from "./api/openapi.ts";
import { dropEndpoints, stateEndpoints } from "./api/state.ts";
import { installEndpoints, type ServedEndpoint, served } from "./endpoint-routes.ts";
import { exposer } from "./exposition.ts";
import type { OperationsOptions } from "./options.ts";
import { installProblems, sendProblem, unknownSubject } from "./problems.ts";
import type { HealthPart, WaitingFile } from "./state-of-work.ts";

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
  /** Commands of persons, authorized only by the secret (`endpoint-file.ts`); refused when absent. */
  readonly commands?: {
    readonly secret: string;
    execute(body: unknown): Promise<unknown>;
  };
  /** Endpoints beside those of this file, or in place of one with the same method and path. */
  readonly endpoints?: readonly ServedEndpoint[];
}

export interface OperationsServer {
  /** Such as `http://127.0.0.1:9464`. */
  readonly url: string;
  /** The URL that webhooks are sent to: the same, unless they have a listener of their own. */
  readonly webhookUrl: string;
  close(): Promise<void>;
}

type ServerOptions = Pick<OperationsOptions, "listen" | "webhook"> &
  Partial<Pick<OperationsOptions, "access" | "http">>;

const WEBHOOK_BYTES_MAX = 4_000_000;
/** Requests without credentials cause at most one query of the ledger in this time, however many there are. */
const ANONYMOUS_HEALTH_MS = 1_000;

export async function startOperations(options: ServerOptions, parts: OperationsParts): Promise<OperationsServer> {
  const { http = httpOptions.parse({}), access: rules, webhook } = options;
  const app = serverOf(http, parts.log);
  const secret = parts.commands?.secret ?? null;
  const access = installAccess(app, { tokens: rules?.tokens ?? [], secret }, parts.log);
  // Reasons come from servers and libraries, which may repeat a secret. Metrics hold none, and a password such as
  // `headgate` would mask the names of the metrics and silence every alert on them.
  app.addHook("onSend", async ({ routeOptions }, _reply, payload) =>
    typeof payload === "string" && routeOptions.url !== "/metrics" ? masked(payload) : payload,
  );
  addHealth(app, parts, access);
  addEndpoints(app, parts, access);
  if (parts.commands !== undefined) addCommands(app, parts.commands);
  if (webhook.listen === undefined) addWebhook(app, parts);
  const url = await listenOrExplain(app, options.listen, "operations.listen");
  if (webhook.listen === undefined) return { url, webhookUrl: url, close: () => app.close() };
  const receiver = serverOf(http, parts.log);
  addWebhook(receiver, parts);
  try {
    const webhookUrl = await listenOrExplain(receiver, webhook.listen, "operations.webhook.listen");
    return { url, webhookUrl, close: async () => void (await Promise.all([app.close(), receiver.close()])) };
  } catch (thrown) {
    await app.close();
    throw thrown;
  }
}

function serverOf(http: HttpLimits, log: Logger): FastifyInstance {
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: WEBHOOK_BYTES_MAX,
    forceCloseConnections: true,
    http: serverLimits(http),
  }) as unknown as FastifyInstance;
  limitConnections(app, http, log);
  // The signature covers the bytes as they came, so the body is not parsed here.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  installProblems(app, log);
  return app;
}

const OPEN = { config: { need: "nothing" } } as const;
const READ = { config: { need: "read" } } as const;
const METRICS = { config: { need: "metrics" } } as const;

function addHealth(app: FastifyInstance, parts: OperationsParts, access: Access): void {
  const query = shareQuery(() => parts.health());
  app.get("/health/live", OPEN, () => ({ status: "live" }));
  app.get("/health/ready", OPEN, async (request, reply) => {
    const isKnown = access.mayAsk(request, "read");
    const health = await (isKnown ? query.now() : query.within(ANONYMOUS_HEALTH_MS));
    const ready = health.every((part) => part.ready);
    const status = ready ? "ready" : "not ready";
    // The reasons name hosts, files and services, so only authorized callers see them.
    const body = isKnown ? { status, parts: health } : { status };
    return reply.code(ready ? 200 : 503).send(body);
  });
  const expose = exposer(parts.metrics);
  app.get("/metrics", METRICS, async (request, reply) => {
    const { type, text } = await expose(request.headers.accept);
    return reply.type(type).send(text);
  });
}

function addEndpoints(app: FastifyInstance, parts: OperationsParts, access: Access): void {
  const { ledger, endpoints: more = [] } = parts;
  const own = [
    ...served(stateEndpoints, () => ({
      runs: ({ query: { limit, state } }) => ledger.recentRuns(limit, state),
      waiting: () => parts.waiting(),
      async trace({ params: { query } }) {
        const found = await ledger.trace(query);
        if (found.length > 0) return found;
        throw unknownSubject({
          operation: "trace file",
          subject: query,
          message: `nothing in the ledger is named ${query}`,
        });
      },
    })),
    // Without the single files, which `/operations/waiting` lists.
    ...served(dropEndpoints, () => ({ drops: () => parts.drops().map(({ waiting: _, ...state }) => state) })),
  ];
  const isReplaced = ({ endpoint: { method, path } }: ServedEndpoint) =>
    more.some(({ endpoint }) => endpoint.method === method && endpoint.path === path);
  const all = [...own.filter((one) => !isReplaced(one)), ...more];
  installEndpoints(app, all, (request) => access.personOf(request));
  const document = openApi(all.map(({ endpoint }) => endpoint));
  app.get("/operations/openapi.json", READ, () => document);
}

function addWebhook(app: FastifyInstance, parts: OperationsParts): void {
  const warn = createRareWarning(parts.log, "refused", "webhooks were refused");
  app.post("/webhooks/outcome", OPEN, async (request, reply) => {
    const signature = request.headers["x-headgate-signature"];
    const answer = await parts.receiveOutcome(
      String(request.body ?? ""),
      Array.isArray(signature) ? signature[0] : signature,
    );
    if (answer.status === "refused") {
      warn({ reason: answer.reason, from: request.ip });
      return sendProblem(reply, 401, { detail: answer.reason });
    }
    // An operation of another gateway is answered with success too: a repeated webhook would not change that.
    return reply.code(200).send(answer);
  });
}

function addCommands(app: FastifyInstance, commands: NonNullable<OperationsParts["commands"]>): void {
  app.post("/operations/orders", { config: { need: "command" } }, async (request, reply) => {
    try {
      return await commands.execute(parsedJson(String(request.body ?? "")));
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
