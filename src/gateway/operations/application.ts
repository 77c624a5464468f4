/** The application behind the listeners of the operations API, loaded with the first request. */
import type { Server } from "node:http";
import { hostname } from "node:os";
import cookie from "@fastify/cookie";
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { openMetricsContentType, prometheusContentType, type Registry, type RegistryContentType } from "prom-client";
import { type Clock, isoInstant } from "#core/clock.ts";
import { HeadgateError, RejectedError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { packageVersion } from "#core/package/version.ts";
import { createRareWarning } from "#core/rare-warnings.ts";
import { masked } from "#core/secrets.ts";
import { shareQuery } from "#core/shared-query.ts";
import { trustedProxies } from "#core/sign-in/options.ts";
import { parsedJson } from "#core/text.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Access, installAccess } from "./access.ts";
import type { HandlersOf, Person } from "./api/endpoint.ts";
import { liveEndpoints } from "./api/live.ts";
import { openApi } from "./api/openapi.ts";
import { linkEndpoints, peopleEndpoints } from "./api/people.ts";
import { stateEndpoints } from "./api/state.ts";
import { type Console, oneTimeLink } from "./console/console.ts";
import { addPages } from "./console/pages.ts";
import { installEndpoints, type ServedEndpoint, served } from "./endpoint-routes.ts";
import type { LiveUpdates } from "./live.ts";
import type { OperationsOptions } from "./options.ts";
import { installProblems, sendProblem, unknownSubject, unroutable } from "./problems.ts";
import type { HealthPart, WaitingPart, WaitingQuery } from "./state-of-work.ts";

const WEBHOOK_BYTES_MAX = 4_000_000;
/** Characters of a part of an address, which may be the path of a file. */
const ADDRESS_PART_MAX = 4_096;
/** The data of the configuration in force, for commands, whose user may read its file. */
const WRITTEN = "/operations/configuration/written";
const UNMASKED = ["/metrics", WRITTEN];
/** Requests without credentials cause at most one query of the ledger in this time, however many there are. */
const ANONYMOUS_HEALTH_MS = 1_000;

/** The share of one listener. */
export interface Served {
  /** Null where the listener takes no sessions. */
  readonly people: Console | null;
  /** Known when all listen. */
  readonly urls: { readonly console: string };
  /** False for a listener of webhooks alone. */
  readonly hasRoutes: boolean;
  readonly hasWebhook: boolean;
}

/** The application of a server, which listens already. */
export async function createApplication(
  server: Server,
  options: ServerOptions,
  parts: OperationsParts,
  listener: Served,
): Promise<FastifyInstance> {
  const app = applicationOf(server, parts.log, listener.people);
  if (listener.hasRoutes) addRoutes(app, options, { ...parts, endpoints: await parts.endpoints?.() }, listener);
  if (listener.hasWebhook) addWebhook(app, parts);
  return app;
}

/** With the endpoints that were loaded. */
type LoadedParts = Omit<OperationsParts, "endpoints"> & { readonly endpoints: readonly ServedEndpoint[] | undefined };

function addRoutes(app: FastifyInstance, options: ServerOptions, parts: LoadedParts, served: Served): void {
  const { people } = served;
  const secret = parts.commands?.secret ?? null;
  const rules = { tokens: options.access?.tokens ?? [], secret, people: people ?? undefined };
  const access = installAccess(app, rules, parts.log);
  // Reasons come from servers and libraries, which may repeat a secret. Metrics hold none, and a password such as
  // `headgate` would mask the names of the metrics and silence every alert on them.
  app.addHook("onSend", async ({ routeOptions }, _reply, payload) =>
    typeof payload === "string" && !UNMASKED.includes(routeOptions.url ?? "") ? masked(payload) : payload,
  );
  addHealth(app, parts, access);
  addEndpoints(app, parts, access, served);
  if (parts.commands !== undefined) addCommands(app, parts.commands);
  if (people !== null) addPages(app, { people, log: parts.log });
}

function applicationOf(server: Server, log: Logger, people: Console | null): FastifyInstance {
  const app = fastify({
    serverFactory: () => server,
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: WEBHOOK_BYTES_MAX,
    frameworkErrors: unroutable,
    routerOptions: { maxParamLength: ADDRESS_PART_MAX },
    trustProxy: people === null ? false : trustedProxies(people.options.trustProxy),
  }) as unknown as FastifyInstance;
  app.decorateRequest("newCookie", null);
  void app.register(cookie);
  // The signature covers the bytes as they came, so the body is not parsed here.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  installProblems(app, log);
  return app;
}

const OPEN = { config: { need: "nothing" } } as const;
const READ = { config: { need: "read" } } as const;
const METRICS = { config: { need: "metrics" } } as const;

function addHealth(app: FastifyInstance, parts: LoadedParts, access: Access): void {
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

function addEndpoints(app: FastifyInstance, parts: LoadedParts, access: Access, { people, urls }: Served): void {
  const { ledger, live, endpoints: more = [] } = parts;
  const own = [
    ...peopleServed(parts, people, urls),
    ...(live === undefined ? [] : served(liveEndpoints, () => liveHandlers(live))),
    ...served(stateEndpoints, () => ({
      async runs({ query: { limit, state, after } }) {
        const runs = await ledger.recentRuns(limit, state, after);
        const next = runs.length < limit ? null : (runs.at(-1)?.id ?? null);
        return { runs, total: await ledger.countRuns(state), next };
      },
      waiting: ({ query }) => parts.waiting(query),
      async trace({ params: { query }, query: { limit } }) {
        const files = await ledger.trace(query, limit);
        if (files.length > 0)
          return { files, total: files.length < limit ? files.length : await ledger.countTraced(query) };
        throw unknownSubject({
          operation: "trace file",
          subject: query,
          message: `nothing in the ledger is named ${query}`,
        });
      },
    })),
  ];
  const all = [...own, ...more];
  installEndpoints(app, all, access);
  const document = openApi(all.map(({ endpoint }) => endpoint));
  app.get("/operations/openapi.json", READ, () => document);
}

function liveHandlers(live: LiveUpdates): HandlersOf<typeof liveEndpoints> {
  return {
    live:
      ({ person }) =>
      (client) =>
        live.add(client, person),
  };
}

function peopleServed(
  { people: facts }: LoadedParts,
  people: Console | null,
  urls: Served["urls"],
): readonly ServedEndpoint[] {
  if (facts === undefined) return [];
  const { clock, node } = facts;
  const name = hostname();
  const version = packageVersion();
  const me: HandlersOf<typeof peopleEndpoints> = {
    me: ({ person, csrfToken }) => {
      const now = { nowIso: isoInstant(clock.now()), zone: Temporal.Now.timeZoneId() };
      return { ...person, csrfToken, gateway: { name, node, version, ...now } };
    },
  };
  if (people === null) return served(peopleEndpoints, () => me);
  const makeLink = ({ person }: { readonly person: Person }) => oneTimeLink(people, urls.console, person.name);
  return [...served(peopleEndpoints, () => me), ...served(linkEndpoints, () => ({ makeLink }))];
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
  app.get(WRITTEN, { config: { need: "command" } }, () => commands.configuration?.() ?? {});
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

// The metrics as text: in the Prometheus format, or in OpenMetrics with exemplars for clients that ask for it.

interface Exposition {
  readonly type: string;
  readonly text: string;
}

/**
 * Requests are served one after another, since the registry has one format at a time. `accept` is the header of the
 * request.
 */
function exposer(registry: Registry): (accept: string | undefined) => Promise<Exposition> {
  let latest: Promise<unknown> = Promise.resolve();
  const write = async (accept: string | undefined): Promise<Exposition> => {
    const open = accept?.includes("application/openmetrics-text") === true;
    const any = registry as Registry<RegistryContentType>;
    any.setContentType(open ? openMetricsContentType : prometheusContentType);
    return { type: any.contentType, text: await any.metrics() };
  };
  return (accept) => {
    const mine = latest.then(() => write(accept));
    latest = mine.catch(() => undefined); // Each caller handles its own.
    return mine;
  };
}

export interface OperationsParts {
  readonly ledger: Ledger;
  readonly log: Logger;
  readonly metrics: Registry;
  health(): Promise<readonly HealthPart[]>;
  waiting(query?: WaitingQuery): Promise<WaitingPart>;
  receiveOutcome(body: string, signature: string | undefined): Promise<WebhookAnswer>;
  /** Commands of persons, authorized only by the secret (`endpoint-file.ts`); refused when absent. */
  readonly commands?: {
    readonly secret: string;
    execute(body: unknown): Promise<unknown>;
    /** The data of the configuration's file as it is in force. */
    configuration?(): object;
  };
  /** Sessions of people in browsers; none when absent. */
  readonly people?: { readonly clock: Clock; readonly node: string | null; readonly linksFile: string };
  readonly live?: LiveUpdates;
  /**
   * Loads the endpoints beside those of `application.ts`, or in place of one with the same method and path. Called with
   * the first request.
   */
  readonly endpoints?: () => Promise<readonly ServedEndpoint[]>;
}

export type ServerOptions = Pick<OperationsOptions, "listen" | "webhook"> &
  Partial<Pick<OperationsOptions, "access" | "http" | "console">>;

export type WebhookAnswer =
  | { readonly status: "recorded" | "unknown" }
  | { readonly status: "refused"; readonly reason: string };
