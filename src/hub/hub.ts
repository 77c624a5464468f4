/**
 * The measurement data service. `base_url` is the URL itself, `push_url` is `<url>/push`, `token_url` is
 * `<url>/connect/token` or `<url>/realms/<realm>/protocol/openid-connect/token`.
 */
import cookie from "@fastify/cookie";
import Fastify, { type FastifyInstance } from "fastify";
import { z } from "zod";
import { type Clock, systemClock } from "#core/clock.ts";
import { limitConnections, serverLimits } from "#core/connection-limits.ts";
import { ConfigError, systemCode } from "#core/errors.ts";
import { endConnectionsOnClose } from "#core/http-drain.ts";
import type { Logger } from "#core/log.ts";
import { packageVersion } from "#core/package/version.ts";
import { filesOf, logNarrowed, narrowModes } from "#core/private-files.ts";
import { once } from "#core/promises.ts";
import { shareQuery } from "#core/shared-query.ts";
import { trustedProxies } from "#core/sign-in/options.ts";
import { createPasswords, type HashCost } from "#core/sign-in/passwords.ts";
import { createSignInThrottle } from "#core/sign-in/throttle.ts";
import { startFault } from "#core/start-fault.ts";
import { alarmRoutes } from "./alarms/routes.ts";
import { startAlarms } from "./alarms/service.ts";
import { type Recalculation, startRecalculation, wakeAfterChanges } from "./calculated/recalculation/recalculation.ts";
import { calculationRoutes } from "./calculated/recalculation/routes.ts";
import { type GatewayViewOf, type HubContext, NO_GATEWAY } from "./context.ts";
import { exportRoutes } from "./data/export.ts";
import { originRoutes } from "./data/origin.ts";
import { removalRoutes } from "./data/removal.ts";
import { RollupBuilder } from "./data/rollups/builder.ts";
import { dataRoutes } from "./data/routes.ts";
import { type Deliveries, startDeliveries } from "./deliveries/start.ts";
import { eventRoutes } from "./events/routes.ts";
import { genericPushRoutes } from "./file-triggers/generic-push.ts";
import { type MappersOf, NO_MAPPERS } from "./file-triggers/mappers.ts";
import { fileTriggerRoutes } from "./file-triggers/routes.ts";
import { fileRoutes } from "./files/routes.ts";
import { openStoredFiles, type StoredFiles } from "./files/service.ts";
import { formRoutes } from "./forms/routes.ts";
import { finishForms } from "./forms/unfinished.ts";
import { watchFullDisk } from "./full-disk.ts";
import { installAccess } from "./http/access.ts";
import { documentationRoutes } from "./http/documentation.ts";
import { requireSameIds } from "./http/fixed-fields.ts";
import { takeJson } from "./http/json-bodies.ts";
import { belowRoutes, installProblems, ROUTER } from "./http/problems.ts";
import { installQueryNames } from "./http/query-names.ts";
import { installRates } from "./http/rates.ts";
import { described, type HubRoute, type RouteFacts } from "./http/route.ts";
import { installUnknownNames } from "./http/unknown-names.ts";
import { invitationRoutes } from "./invitations/routes.ts";
import { startMail } from "./mail/mail.ts";
import { masterDataRoutes } from "./master-data/routes.ts";
import { createMasterData, type MasterData } from "./master-data/service.ts";
import { createMetrics, type HubMetrics } from "./metrics.ts";
import type { HubOptions } from "./options.ts";
import { pageRoutes } from "./pages/routes.ts";
import { startPurge } from "./purge.ts";
import { type Ingestion, startIngestion } from "./push/ingestion.ts";
import { operationRoutes } from "./push/operations.ts";
import { pushRoutes } from "./push/routes.ts";
import { qualityRoutes } from "./quality/routes.ts";
import { searchRoutes } from "./search/routes.ts";
import { createSessions } from "./sessions/sessions.ts";
import { openStore } from "./store/open.ts";
import type { HubStore } from "./store/store.ts";
import { changeRoutes } from "./structure/changes.ts";
import { groupRoutes } from "./structure/groups.ts";
import { referentialRoutes } from "./structure/referentials.ts";
import { siteRoutes } from "./structure/sites.ts";
import { sourceRoutes } from "./structure/sources.ts";
import { unsupportedRoutes } from "./structure/unsupported.ts";
import { variableRoutes } from "./structure/variables.ts";
import { viewRoutes } from "./structure/views.ts";
import { createGuard } from "./token/guard.ts";
import { createInnerTokens, type MintInnerToken } from "./token/inner.ts";
import { createKeyRing } from "./token/keys.ts";
import { discoveryRoutes, tokenRoutes } from "./token/routes.ts";
import { seedIdentities } from "./token/seed.ts";
import { createTokenRates } from "./token/token-rates.ts";
import { createTokens } from "./token/tokens.ts";
import { type RunningTransfer, startTransfer } from "./transfer/transfer.ts";
import { userRoutes } from "./users/routes.ts";

export interface HubParts {
  readonly log: Logger;
  readonly clock?: Clock;
  /** A fault point to arm in the ingestion thread as well (`core/faults.ts`), for tests. */
  readonly fault?: string | undefined;
  /** Cost of password hashes; lower in tests, which start many hubs. */
  readonly hashCost?: HashCost;
  /** Mappers of the gateway that works with the hub; none without one. */
  readonly mappersOf?: MappersOf;
  readonly gatewayView?: GatewayViewOf;
}

export interface RunningHub {
  /** `http://host:port`, without a slash at the end. */
  readonly url: string;
  /** Address of the metrics; null without a listener for them. */
  readonly metricsUrl: string | null;
  /** Of the file-transfer server; null without one. */
  readonly transfer: RunningTransfer["addresses"] | null;
  /** Every route of the hub. */
  readonly routes: readonly HubRoute[];
  readonly inside: HubInside;
  /** Completes running requests and the current operation; the rest of the queue waits in the store. Idempotent. */
  close(): Promise<void>;
}

/** A client that stalls for this long in the middle of a request does not delay the shutdown. */
const SILENCE_MS = 30_000;

/** When the store or the port is not available: `TransientError` where that may pass by itself, else `ConfigError`. */
export async function startHub(options: HubOptions, parts: HubParts): Promise<RunningHub> {
  const { clock = systemClock, fault = null, hashCost, mappersOf = NO_MAPPERS, gatewayView = NO_GATEWAY } = parts;
  const fullDisk = watchFullDisk(options, parts.log, clock);
  const { log } = fullDisk;
  if (options.store.kind === "sqlite") logNarrowed(narrowModes(filesOf(options.store.path)), log);
  const store = await openStore(options.store, log, options.limits.filterTime);
  const stops: (() => Promise<void>)[] = [() => store.close()];
  const stopAll = once(async () => {
    for (const stop of stops.toReversed()) await stop();
  });
  try {
    await seedIdentities(store, options, clock, hashCost);
    const base = { options, store, log, clock, fullDisk };
    const { tokenThrottle } = options;
    const throttle = createSignInThrottle(tokenThrottle, clock);
    const metrics = createMetrics(options, store, base, gatewayView);
    stops.push(() => metrics.close());
    const passwords = metrics.withCounts(await createPasswords(clock, throttle, tokenThrottle.queue, hashCost));
    const keys = createKeyRing(store.identity, options, clock);
    const tokens = createTokens(keys, { lifetimeMs: options.tokenLifetime, clock });
    const rates = createTokenRates(tokenThrottle.tokensPerMinute, clock);
    const sessions = createSessions(base);
    const guard = createGuard({ identity: store.identity, people: store.people, tokens, passwords, sessions, clock });
    const background = startBackground({ ...base, fault, metrics, stops });
    const files = await openStoredFiles({ options, store: store.files, log, clock });
    stops.push(async () => files?.close());
    const masterData = createMasterData(options, store, clock);
    stops.push(() => masterData.close());
    const mail = startMail(options, store, { log, clock });
    stops.push(() => mail.close());
    const alarms = startAlarms({ ...base, ...background, mail });
    stops.push(() => alarms.close());
    metrics.measureAlarms(() => alarms.lagMs());
    const { app, routes } = buildServer(metrics, {
      ...base,
      ...{ passwords, keys, rates, tokens, guard, throttle, sessions },
      ...{ ...background, mappersOf, gatewayView, files, masterData, mail, alarms },
    });
    stops.push(() => app.close());
    const url = await listen(app, options.listen);
    mail.listensAt(url);
    const metricsUrl = await metrics.listen();
    const transfer = await startTransfer({ ...base, passwords, files });
    stops.push(async () => transfer?.close());
    log.info({ ...startFacts(options), url, metricsUrl, ...transfer?.addresses }, "hub listens");
    const inside = {
      accountIds: () => store.identity.accountIds(),
      mint: createInnerTokens(keys, options.tokenLifetime, clock),
      store,
      files,
      masterData,
    };
    return { url, metricsUrl, transfer: transfer?.addresses ?? null, routes, inside, close: stopAll };
  } catch (thrown) {
    await stopAll();
    throw thrown;
  }
}

function buildServer(metrics: HubMetrics, context: HubContext): { app: FastifyInstance; routes: readonly HubRoute[] } {
  const app = Fastify({
    bodyLimit: context.options.limits.requestBody,
    exposeHeadRoutes: false,
    ...belowRoutes,
    trustProxy: trustedProxies(context.options.trustProxy),
    forceCloseConnections: "idle",
    http: serverLimits(context.options.http),
    routerOptions: ROUTER,
  });
  endConnectionsOnClose(app, SILENCE_MS);
  limitConnections(app, context.options.http, context.log);
  takeJson(app, "application/json");
  metrics.watch(app);
  wakeAfterChanges(app, context.recalculation);
  installProblems(app, context.fullDisk);
  void app.register(cookie);
  const routes = installAccess(app, context.guard, context.sessions);
  installRates(app, context.options);
  installQueryNames(app);
  installUnknownNames(app, context.options);
  app.addHook("preHandler", async (request) => requireSameIds(request));
  const files = shareQuery(() => filesHealth(context.gatewayView));
  app.get("/health", described(HEALTH), async (_request, reply) => {
    const full = await context.fullDisk.state();
    if (full !== null) void reply.code(503);
    return {
      ...(full === null ? { status: "ok" } : { status: "not ok", ...full }),
      ...(await queueOf(context.store)),
      ...(await files.within(ANONYMOUS_HEALTH_MS)),
    };
  });
  const resources = [
    tokenRoutes,
    discoveryRoutes,
    siteRoutes,
    sourceRoutes,
    variableRoutes,
    viewRoutes,
    groupRoutes,
    formRoutes,
    fileTriggerRoutes,
    calculationRoutes,
    dataRoutes,
    originRoutes,
    exportRoutes,
    qualityRoutes,
    pushRoutes,
    eventRoutes,
    operationRoutes,
    fileRoutes,
    masterDataRoutes,
    genericPushRoutes,
    changeRoutes,
    removalRoutes,
    pageRoutes,
    referentialRoutes,
    invitationRoutes,
    userRoutes,
    searchRoutes,
    alarmRoutes,
    unsupportedRoutes,
  ];
  for (const resource of resources) void app.register((scope) => resource(scope, context));
  void app.register((scope) => documentationRoutes(scope, context, routes));
  return { app, routes };
}

/** For the log of the start. */
function startFacts({ store, accounts }: HubOptions) {
  const place = store.kind === "sqlite" ? store.path : `postgres (schema ${store.schema})`;
  return { version: packageVersion(), store: place, accounts: accounts.length };
}

const HEALTH: RouteFacts = {
  access: "open",
  tag: "Hub",
  summary: "Whether the hub answers, and how many operations wait or failed",
  answer: z.object({
    status: z.enum(["ok", "not ok"]).describe("Not ok, with status 503: the disk is full, and nothing is stored."),
    since: z.string().optional().describe("Since when it is not ok."),
    reason: z.string().optional().describe("Why it is not ok."),
    pendingOperations: z.int(),
    failedOperations: z.int(),
    files: z
      .object({ status: z.enum(["ready", "not ready"]), needAttention: z.int() })
      .optional()
      .describe("Whether stored files are processed, and how many need a person; absent where they are not."),
  }),
};

/** Requests without credentials cause at most one query of the ledger in this time, however many there are. */
const ANONYMOUS_HEALTH_MS = 1_000;

/** The reasons name files and triggers, so that they are shown at the address of the metrics alone. */
async function filesHealth(viewOf: GatewayViewOf) {
  const view = viewOf();
  if (view === null) return {};
  const [health, needAttention] = await Promise.all([view.health(), view.needAttention()]);
  return { files: { status: health.every(({ ready }) => ready) ? "ready" : "not ready", needAttention } };
}

async function queueOf({ operations }: HubStore) {
  const { waiting, failed } = await operations.counts();
  return { pendingOperations: waiting, failedOperations: failed };
}

async function listen(app: FastifyInstance, address: string): Promise<string> {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replace(/^\[|\]$/g, "");
  try {
    await app.listen({ host, port: Number(address.slice(colon + 1)) });
  } catch (thrown) {
    if (!["EADDRINUSE", "EACCES", "EADDRNOTAVAIL", "ENOTFOUND"].includes(systemCode(thrown) ?? "")) throw thrown;
    const message = `the hub cannot listen on ${address} (${systemCode(thrown)})`;
    const facts = { operation: "start hub", subject: address, message, cause: thrown };
    // A missing right does not appear by itself.
    throw systemCode(thrown) === "EACCES" ? new ConfigError("HG-CONF-004", facts) : startFault("HG-CONF-004", facts);
  }
  const bound = app.addresses()[0];
  if (bound === undefined || typeof bound === "string") throw new Error("the server has no address");
  return `http://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`;
}

/** The parts of a hub for the gateway in its process; `platform.ts` joins the two. */
export interface HubInside {
  accountIds(): Promise<readonly number[]>;
  /** A token to push to an account, and to read it. */
  readonly mint: MintInnerToken;
  readonly store: Pick<HubStore, "files" | "fileTriggers" | "operations" | "zones">;
  /** Null when there is no folder for the bytes of files. */
  readonly files: StoredFiles | null;
  readonly masterData: MasterData;
}

// Work of the hub beside requests: it applies operations, calculates, sends outcomes, purges, and finishes forms.

interface Background {
  readonly deliveries: Deliveries;
  readonly ingestion: Ingestion;
  readonly recalculation: Recalculation;
}

interface BackgroundParts {
  readonly options: HubOptions;
  readonly store: HubStore;
  readonly log: Logger;
  readonly clock: Clock;
  /** A fault point to arm in the threads; null: none. */
  readonly fault: string | null;
  readonly metrics: HubMetrics;
  /** Ends what was started, the last first. */
  readonly stops: (() => Promise<void>)[];
}

function startBackground({ metrics, stops, ...base }: BackgroundParts): Background {
  const { options, store, log, clock } = base;
  const deliveries = startDeliveries(store, options, { log, clock });
  stops.push(() => deliveries.close());
  const ingestion = startIngestion({
    ...base,
    operations: store.operations,
    onApplied: metrics.countReadings,
    onFinished: deliveries.wake,
    onEffects: ({ due }) => {
      if (due.length > 0) recalculation.wake();
    },
  });
  stops.push(() => ingestion.close());
  const recalculation = startRecalculation({
    ...base,
    ingestion,
    onEnded(end, seconds) {
      metrics.countCalculation(end, seconds);
      deliveries.wake();
    },
  });
  stops.push(() => recalculation.close());
  const rollups = new RollupBuilder({ points: store.points, log, clock });
  stops.push(() => rollups.close());
  stops.push(startPurge(store, options, log, clock));
  stops.push(finishForms(store, log, clock));
  return { deliveries, ingestion, recalculation };
}
