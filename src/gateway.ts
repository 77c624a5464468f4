/** The composition root: joins the stages in the order of the flow, and takes them apart in reverse. */
import { availableParallelism } from "node:os";
import { Registry } from "prom-client";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { readOutcomeWebhook } from "./delivery/outcomes.ts";
import { createDelivery } from "./delivery/service-delivery.ts";
import { planFinish } from "./drops/archive-name.ts";
import { createDrop } from "./drops/create.ts";
import type { IntakeFacts } from "./drops/intake/intake.ts";
import { Watcher, type WatcherStatus } from "./drops/watcher.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { openLedger } from "./ledger/open.ts";
import type { MapperVersions, MappingPool } from "./mapping/mapping.ts";
import { openMapping } from "./mapping/open.ts";
import type { Arrival, FinishRule, LedgerEvent, Run, Summary } from "./model.ts";
import { alarmSender } from "./operations/alarm.ts";
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
import { reviseOutcome } from "./runs/confirming.ts";
import { startHousekeeping } from "./runs/housekeeping.ts";
import { type LookupStore, openLookupStore } from "./runs/lookups.ts";
import { recoverRuns } from "./runs/recovery.ts";
import { openSpool, type Spool } from "./runs/spool.ts";
import type { ConfirmRule, DropPost, RunSteps, ServicePost } from "./runs/steps.ts";
import { ContainerCopies } from "./runs/unpacking/copies.ts";
import { type Clock, isoInstant, systemClock } from "./support/clock.ts";
import { ConfigError } from "./support/errors.ts";
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

/** A drop that failed this often in a row is not waited for by `--until-idle`. */
const FAILURES_GIVEN_UP = 3;
/** A webhook that has not come by then is helped by reading back. */
const WEBHOOK_PATIENCE_MS = 30_000;

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
  const lookups = await openLookupStore(config.lookups, spool.root, clock);

  // Questions and outcomes can come in while the rest is being joined.
  let tell: (runId: string) => Promise<void> = async () => {};
  let health: () => Promise<readonly HealthPart[]> = async () => [
    { part: "gateway", ready: false, reason: "it is starting" },
  ];
  let waiting: () => Promise<readonly WaitingFile[]> = async () => [];
  let statuses: () => readonly WatcherStatus[] = () => [];
  const operations = await startOperations(config.operations, {
    ledger,
    log,
    metrics: metrics.registry,
    health: () => health(),
    waiting: () => waiting(),
    drops: () => statuses(),
    receiveOutcome: (body, signature) =>
      receiveOutcome(config, { body, signature }, ledger, clock, (runId) => tell(runId)),
  });
  closers.push(() => operations.close());

  const registry = createRegistry(config.triggers);
  const intake = intakeFacts(config, { registry, clock, spool: spool.root });
  const drops = createDrops(config, { log, intake }, closers);
  const { pool, versions, ...mapping } = openMapping(config, spool.root, { log, clock });
  closers.push(() => mapping.close());
  const services = openServices(config, operations.url, { ledger, log, clock }, closers);
  const onRun = () => conductor.wake();
  const shared = { ledger, log, drops, lookups, versions };
  const parts = claimParts(config, { ...shared, registry, onRun });
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

  const watchers = config.drops.flatMap((options) => {
    const drop = drops.get(options.name)?.drop;
    return drop === undefined ? [] : [new Watcher({ drop, options, journal: ledger, claim, clock, log })];
  });
  closers.push(() => Promise.all(watchers.map((watcher) => watcher.stop())));
  statuses = () => watchers.map((watcher) => watcher.status());
  waiting = () =>
    waitingFiles(ledger, statuses(), (run) => conductor.waitReason(run), clock.now().epochMilliseconds);
  const late = new LateFiles({
    find: () => missingFiles(config.triggers, ledger, Temporal.Instant.from(startedAt), clock.now()),
    send: alarmSender(config.operations.alarm, clock),
    count: (missing) => metrics.countLate(missing.map((file) => file.trigger)),
    clock,
    log,
  });
  closers.push(() => late.stop());
  const names = {
    drops: config.drops.map(({ name }) => name),
    services: config.services.map(({ name }) => name),
  };
  health = async () => [
    ...(await healthOf(statuses(), names, conductor.serviceWaits(), ledger, late.missing())),
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
  const webhook = webhookAddress(config, operationsUrl);
  const confirm = confirmRule(config, webhook !== null);
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

/** Port 0 in `webhook.publicUrl` stands for the port that `operations.listen` took. */
function webhookAddress(config: GatewayConfig, operationsUrl: string): string | null {
  const { publicUrl } = config.operations.webhook;
  if (publicUrl === undefined) return null;
  const url = new URL(publicUrl);
  if (url.port === "0") url.port = new URL(operationsUrl).port;
  return new URL("webhooks/outcome", `${url.href.replace(/\/$/, "")}/`).href;
}

function confirmRule(config: GatewayConfig, hasWebhook: boolean): ConfirmRule {
  const { by, within, pollEvery } = config.push.confirm;
  return {
    by: by === "auto" ? (hasWebhook ? "webhook" : "read-back") : by,
    withinMs: within,
    patienceMs: Math.min(WEBHOOK_PATIENCE_MS, within / 2),
    everyMs: pollEvery,
  };
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
    finishAfter: (run, rule) => finishAfter(config, run, rule),
    planFinish,
    currentMapper: (name) =>
      versions.current(name).catch((thrown: unknown) => {
        if (thrown instanceof ConfigError) return null;
        throw thrown;
      }),
  };
}

/** Archiving waits for acceptance, deleting for the confirmation, unless the trigger says otherwise (invariant 1). */
function finishAfter(config: GatewayConfig, run: Run, rule: FinishRule): "accepted" | "confirmed" {
  if (config.push.confirm.by === "none") return "accepted";
  const trigger = config.triggers.find((one) => one.name === run.binding.trigger);
  return trigger?.finishAfter ?? (rule.action === "delete" ? "confirmed" : "accepted");
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
    readonly onRun: () => void;
  },
): ClaimParts {
  const { registry, drops } = parts;
  return {
    ...parts,
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
    limits: { pointsMax: config.push.batch.points, bytesMax: config.push.batch.bytes },
  };
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

async function isIdle(watchers: readonly Watcher[], conductor: Conductor): Promise<boolean> {
  const dropsAtRest = () =>
    watchers.every((watcher) => {
      const { completePolls, consecutiveFailures, settlingCount, leftCount } = watcher.status();
      if (consecutiveFailures > 0) return consecutiveFailures >= FAILURES_GIVEN_UP;
      return completePolls > 0 && settlingCount === 0 && leftCount === 0;
    });
  const runsAtRest = async () => {
    const { inHand, runs } = await conductor.pending();
    return inHand === 0 && runs.length === 0;
  };
  if (!dropsAtRest() || !(await runsAtRest())) return false;
  // Files may have come while the last ones were worked on.
  await Promise.allSettled(
    watchers
      .filter((watcher) => watcher.status().consecutiveFailures === 0)
      .map((watcher) => watcher.pollNow()),
  );
  return dropsAtRest() && (await runsAtRest());
}
