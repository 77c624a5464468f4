/** The composition root: joins the stages in the order of the flow, and takes them apart in reverse. */
import { availableParallelism } from "node:os";
import { Registry } from "prom-client";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { readOutcomeWebhook } from "./delivery/outcomes.ts";
import { createDelivery } from "./delivery/service-delivery.ts";
import { planFinish } from "./drops/archive-name.ts";
import { createDrop } from "./drops/create.ts";
import type { IntakeFacts } from "./drops/intake/intake.ts";
import { Watcher, type WatcherFacts, type WatcherStatus } from "./drops/watcher.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { openLedger } from "./ledger/open.ts";
import type { MapperVersions, MappingPool } from "./mapping/mapping.ts";
import { openMapping } from "./mapping/open.ts";
import type { Arrival, BatchLimits, LedgerEvent, Summary } from "./model.ts";
import { alarmSender } from "./operations/alarm.ts";
import { hangSign, newSecret } from "./operations/door.ts";
import { LateFiles } from "./operations/late-files.ts";
import { GatewayMetrics } from "./operations/metrics.ts";
import { startOperations, type WebhookAnswer } from "./operations/server.ts";
import {
  concernsOf,
  type HealthPart,
  healthOf,
  summarise,
  type WaitingFile,
  waitingFiles,
} from "./operations/state-of-work.ts";
import { type ClaimParts, claimArrival } from "./runs/claiming.ts";
import { Conductor } from "./runs/conductor.ts";
import { confirmRule, finishAfter, webhookAddress } from "./runs/confirm-rule.ts";
import { reviseOutcome } from "./runs/confirming.ts";
import { startHousekeeping } from "./runs/housekeeping.ts";
import { isIdle } from "./runs/idleness.ts";
import { liveGateway } from "./runs/live.ts";
import { type LookupStore, openLookupStore } from "./runs/lookups.ts";
import { carryOut } from "./runs/ordering.ts";
import { Pauses } from "./runs/pauses.ts";
import { recoverRuns } from "./runs/recovery.ts";
import { openSpool, type Spool } from "./runs/spool.ts";
import type { DropPost, RunSteps, ServicePost } from "./runs/steps.ts";
import { ContainerCopies } from "./runs/unpacking/copies.ts";
import { type Clock, isoInstant, systemClock } from "./support/clock.ts";
import { ConfigError, TransientError } from "./support/errors.ts";
import type { Logger } from "./support/log.ts";
import { missingFiles } from "./triggers/expectation.ts";
import { createRegistry, laneOf, type TriggerRegistry, whyUnclaimed } from "./triggers/registry.ts";

/** An event with the file that it is about. */
export type FileEvent = LedgerEvent & { readonly drop: string; readonly path: string };

export interface GatewayMeans {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Called after each event was committed, for whoever watches. */
  readonly onEvent?: (event: FileEvent) => void;
}

export interface Gateway {
  readonly ledger: Ledger;
  /** Such as `http://127.0.0.1:9464`. */
  readonly operationsUrl: string;
  /** Where the HTTP intakes can be reached, by the names of their drops. */
  readonly intakes: Readonly<Record<string, string>>;
  /** Nothing settles, every run is at rest, and every drop was looked through after that. */
  isIdle(): Promise<boolean>;
  /** Files that lie at the drops or were worked on since the start, and the points of runs worked on since. */
  summary(): Promise<Summary>;
  /** What a person has to look at: quarantined, held, discarded or unsent runs, drops that cannot be used. */
  concerns(): Promise<string[]>;
  stop(): Promise<void>;
}

export async function startGateway(config: GatewayConfig, means: GatewayMeans): Promise<Gateway> {
  const closers: Closer[] = [];
  try {
    return await assemble(config, means, closers);
  } catch (thrown) {
    await closeAll(closers);
    throw thrown;
  }
}

type Closer = () => Promise<unknown>;

async function closeAll(closers: readonly Closer[]): Promise<void> {
  const faults: unknown[] = [];
  for (const close of closers.toReversed()) await close().catch((thrown) => faults.push(thrown));
  // Everything is closed, the ledger's lock among it, before the first fault is told.
  if (faults.length > 0) throw faults[0];
}

async function assemble(config: GatewayConfig, means: GatewayMeans, closers: Closer[]): Promise<Gateway> {
  const { log, clock = systemClock } = means;
  const startedAt = isoInstant(clock.now());
  const metrics = new GatewayMetrics(new Registry());
  const onEvent = (event: FileEvent) => {
    metrics.count(event);
    means.onEvent?.(event);
  };
  const ledger = await openLedger(config.ledger, { clock, log, onEvent });
  closers.push(() => ledger.close());
  const spool = await openSpool(config.spool);
  const pauses = await Pauses.read(ledger, (all) => metrics.countPauses(all));
  const lookups = await openLookupStore(config.lookups, spool.root, clock);

  // Questions and outcomes can come in while the rest is being joined.
  let tell: (runId: string) => Promise<void> = async () => {};
  let health: () => Promise<readonly HealthPart[]> = async () => [
    { part: "gateway", ready: false, reason: "it is starting" },
  ];
  let waiting: () => Promise<readonly WaitingFile[]> = async () => [];
  let statuses: () => readonly WatcherStatus[] = () => [];
  let order: (asked: unknown) => Promise<unknown> = async () => {
    throw new TransientError("HG-OPS-002", { operation: "take order", subject: "gateway" });
  };
  const secret = newSecret();
  const operations = await startOperations(config.operations, {
    ledger,
    log,
    metrics: metrics.registry,
    health: () => health(),
    waiting: () => waiting(),
    drops: () => statuses(),
    receiveOutcome: (body, signature) =>
      receiveOutcome(config, { body, signature }, ledger, clock, (runId) => tell(runId)),
    orders: { secret, take: (asked) => order(asked) },
  });
  closers.push(() => operations.close());
  closers.push(await hangSign(config.ledger.path, { url: operations.url, secret }));

  const registry = createRegistry(config.triggers);
  const intake = intakeFacts(config, { registry, clock, spool: spool.root });
  const drops = createDrops(config, { log, intake }, closers);
  const { pool, versions, ...mapping } = openMapping(config, spool.root, { log, clock });
  closers.push(() => mapping.close());
  const services = openServices(config, operations.url, { ledger, log, clock }, closers);
  const onRun = () => conductor.wake();
  const shared = { ledger, log, drops, lookups, versions };
  const parts = claimParts(config, { ...shared, registry, pauses, onRun });
  const claim = (arrival: Arrival) => claimArrival(arrival, parts);
  const steps = joinSteps(config, { ...shared, spool, pool, clock, services, claim });
  const recovery = await recoverRuns(steps);

  const conductor = new Conductor(steps, {
    ...intakeHands(config.workers),
    deliveryHands: config.push.concurrency,
  });
  closers.push(() => conductor.stop());
  tell = async (runId) => {
    await reviseOutcome(runId, ledger);
    conductor.wake(runId);
  };

  const watchers = createWatchers(config, drops, { journal: ledger, claim, clock, log, pauses });
  closers.push(() => Promise.all(watchers.map((watcher) => watcher.stop())));
  statuses = () => watchers.map((watcher) => watcher.status());
  waiting = () =>
    waitingFiles(ledger, statuses(), (run) => conductor.waitReason(run), clock.now().epochMilliseconds);
  const live = liveGateway(conductor, watchers, log);
  const binding = { triggers: config.triggers, lookups, limits: batchLimits(config), laneOf };
  order = (asked) => carryOut(asked, { ledger, spool, pauses, binding, log, live });
  const late = lateFiles(config, ledger, { metrics, clock, log, startedAt });
  closers.push(() => late.stop());
  const names = {
    drops: config.drops.map(({ name }) => name),
    services: config.services.map(({ name }) => name),
  };
  health = async () => [
    ...(await healthOf(statuses(), names, conductor.serviceWaits(), ledger, late.missing())),
    ...pauses.health(),
    ...versions.refused().map(({ mapper, reason }) => ({ part: `mapper ${mapper}`, ready: true, reason })),
  ];

  await mapping.start(config.triggers.map((trigger) => trigger.mapper));
  const intakes = await openIntakes(drops);
  // The triggers may have changed since the last start.
  for (const watcher of watchers) await watcher.rematch();
  for (const watcher of watchers) watcher.start();
  late.start();
  conductor.wake();
  closers.push(
    startHousekeeping({ ledger, spool, lookups, versions, clock, log, keepMs: config.ledger.keep }),
  );
  log.info({ ...recovery, operations: operations.url, intakes }, "gateway started");

  return {
    ledger,
    operationsUrl: operations.url,
    intakes,
    isIdle: () => isIdle(watchers, conductor),
    summary: () => summarise(ledger, config.drops, startedAt),
    concerns: async () => concernsOf(statuses(), ledger, (await conductor.pending()).runs, startedAt),
    stop: async () => {
      await closeAll(closers);
      log.info("gateway stopped");
    },
  };
}

function createWatchers(
  config: GatewayConfig,
  drops: ReadonlyMap<string, DropPost>,
  {
    pauses,
    ...facts
  }: Pick<WatcherFacts, "journal" | "claim" | "clock" | "log"> & { readonly pauses: Pauses },
): readonly Watcher[] {
  return config.drops.flatMap((options) => {
    const drop = drops.get(options.name)?.drop;
    const paused = () => pauses.reason("drop", options.name);
    return drop === undefined ? [] : [new Watcher({ drop, options, paused, ...facts })];
  });
}

function lateFiles(
  config: GatewayConfig,
  ledger: Ledger,
  parts: {
    readonly metrics: GatewayMetrics;
    readonly clock: Clock;
    readonly log: Logger;
    readonly startedAt: string;
  },
): LateFiles {
  const { metrics, clock, log, startedAt } = parts;
  return new LateFiles({
    find: () => missingFiles(config.triggers, ledger, Temporal.Instant.from(startedAt), clock.now()),
    send: alarmSender(config.operations.alarm, clock),
    count: (missing) => metrics.countLate(missing.map((file) => file.trigger)),
    clock,
    log,
  });
}

/** As many as can be mapped at once, and those that wait for a worker. */
function intakeHands({ count, queue, perDrop }: GatewayConfig["workers"]) {
  const workers = count === "auto" ? availableParallelism() : count;
  return { intakeHands: workers + queue, intakePerDrop: perDrop === "all" ? workers + queue : perDrop };
}

function createDrops(
  config: GatewayConfig,
  facts: Parameters<typeof createDrop>[1],
  closers: Closer[],
): ReadonlyMap<string, DropPost> {
  const drops = new Map<string, DropPost>();
  for (const options of config.drops) {
    const drop = createDrop(options, facts);
    closers.push(() => drop.close());
    drops.set(options.name, { drop, finish: options.finish, duplicates: options.duplicates });
  }
  return drops;
}

/** The drops that senders connect to. */
async function openIntakes(drops: ReadonlyMap<string, DropPost>): Promise<Readonly<Record<string, string>>> {
  const urls: Record<string, string> = {};
  for (const [name, { drop }] of drops) {
    const url = await drop.open?.();
    if (url !== undefined) urls[name] = url;
  }
  return urls;
}

function openServices(
  config: GatewayConfig,
  operationsUrl: string,
  parts: { readonly ledger: Ledger; readonly log: Logger; readonly clock: Clock },
  closers: Closer[],
): ReadonlyMap<string, ServicePost> {
  const webhook = webhookAddress(config.operations.webhook.publicUrl, operationsUrl);
  const confirm = confirmRule(config.push.confirm, webhook !== null);
  const services = new Map<string, ServicePost>();
  for (const options of config.services) {
    const delivery = createDelivery(options, config.push, {
      journal: parts.ledger,
      log: parts.log,
      clock: parts.clock,
      webhook: webhook !== null && config.push.confirm.by !== "read-back" ? { url: webhook } : null,
    });
    closers.push(() => delivery.close());
    services.set(options.name, { delivery, confirm });
  }
  return services;
}

function joinSteps(
  config: GatewayConfig,
  parts: {
    readonly ledger: Ledger;
    readonly spool: Spool;
    readonly lookups: LookupStore;
    readonly pool: MappingPool;
    readonly versions: MapperVersions;
    readonly clock: Clock;
    readonly log: Logger;
    readonly drops: ReadonlyMap<string, DropPost>;
    readonly services: ReadonlyMap<string, ServicePost>;
    readonly claim: (arrival: Arrival) => Promise<void>;
  },
): RunSteps {
  const { drops, services, versions, ...own } = parts;
  return {
    ...own,
    copies: new ContainerCopies(parts.spool),
    dropPost: (name) => drops.get(name),
    servicePost: (name) => services.get(name),
    finishAfter: (run, rule) => finishAfter(config.push.confirm.by, config.triggers, run, rule),
    planFinish,
    currentMapper: (name) =>
      versions.current(name).catch((thrown: unknown) => {
        if (thrown instanceof ConfigError) return null;
        throw thrown;
      }),
  };
}

function intakeFacts(
  config: GatewayConfig,
  parts: { readonly registry: TriggerRegistry; readonly clock: Clock; readonly spool: string },
): IntakeFacts {
  return {
    spool: parts.spool,
    clock: parts.clock,
    defaultService: config.services[0]?.name ?? "",
    accountOf: (service) => config.services.find(({ name }) => name === service)?.account,
    refusalOf: (token, service, drop) => {
      const { claimed } = parts.registry.claim("", "SendViaHttp", drop, { service, token });
      return claimed === null ? `no trigger of ${service} that fires has the token ${token}` : null;
    },
  };
}

function claimParts(
  config: GatewayConfig,
  parts: {
    readonly ledger: Ledger;
    readonly log: Logger;
    readonly registry: TriggerRegistry;
    readonly drops: ReadonlyMap<string, DropPost>;
    readonly lookups: LookupStore;
    readonly versions: MapperVersions;
    readonly pauses: Pauses;
    readonly onRun: () => void;
  },
): ClaimParts {
  const { registry, drops, pauses } = parts;
  return {
    ...parts,
    pausedTrigger: (name) => pauses.reason("trigger", name),
    dropPost: (name) => drops.get(name),
    planFinish,
    unpacking: (name) => config.drops.find((drop) => drop.name === name)?.archives,
    provenance: ({ drop, path }) => drops.get(drop)?.drop.provenance?.(path) ?? null,
    match: ({ drop, path }, provenance) => {
      const ingestionType = provenance?.ingestionType ?? "SendViaFtp";
      const verdict = registry.claim(path, ingestionType, drop, provenance ?? undefined);
      return { claimed: verdict.claimed, others: verdict.others, why: whyUnclaimed(verdict) };
    },
    laneOf,
    defaultService: config.services[0]?.name ?? "",
    limits: batchLimits(config),
  };
}

function batchLimits({ push }: GatewayConfig): BatchLimits {
  return { pointsMax: push.batch.points, bytesMax: push.batch.bytes };
}

async function receiveOutcome(
  config: GatewayConfig,
  told: { readonly body: string; readonly signature: string | undefined },
  ledger: Ledger,
  clock: Clock,
  tell: (runId: string) => Promise<void>,
): Promise<WebhookAnswer> {
  const { secret } = config.operations.webhook;
  if (secret === undefined)
    return { status: "refused", reason: "operations.webhook.secret is not configured" };
  // Of several accounts, any may be meant.
  const accounts = new Set(config.services.map((service) => service.account));
  const outcome = readOutcomeWebhook({
    ...told,
    secret,
    account: accounts.size === 1 ? config.services[0]?.account : undefined,
    nowSeconds: Math.floor(clock.now().epochMilliseconds / 1000),
  });
  if ("refused" in outcome) return { status: "refused", reason: outcome.refused };
  const runId = await ledger.recordOutcome(outcome);
  if (runId !== null) await tell(runId);
  return { status: runId === null ? "unknown" : "recorded" };
}
