/** The composition root: joins the stages in the order of the flow, and takes them apart in reverse. */
import { Registry } from "prom-client";
import type { GatewayConfig } from "./config/gateway-config.ts";
import type { WatcherStatus } from "./drops/watcher.ts";
import { type Closer, closeAll } from "./gateway/closers.ts";
import { createDrops, createWatchers, intakeFacts, openIntakes } from "./gateway/drops.ts";
import { lateFiles } from "./gateway/late-files.ts";
import { batchLimits, claimParts, intakeHands, joinSteps } from "./gateway/runs.ts";
import { openServices, receiveOutcome } from "./gateway/services.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { openLedger } from "./ledger/open.ts";
import { openMapping } from "./mapping/open.ts";
import type { Arrival, LedgerEvent, Summary } from "./model.ts";
import { hangSign, newSecret } from "./operations/door.ts";
import { GatewayMetrics } from "./operations/metrics.ts";
import { startOperations } from "./operations/server.ts";
import {
  concernsOf,
  type HealthPart,
  healthOf,
  summarise,
  type WaitingFile,
  waitingFiles,
} from "./operations/state-of-work.ts";
import { claimArrival } from "./runs/claiming.ts";
import { Conductor } from "./runs/conductor.ts";
import { reviseOutcome } from "./runs/confirming.ts";
import { startHousekeeping } from "./runs/housekeeping.ts";
import { isIdle } from "./runs/idleness.ts";
import { liveGateway } from "./runs/live.ts";
import { openLookupStore } from "./runs/lookups.ts";
import { carryOut } from "./runs/ordering.ts";
import { Pauses } from "./runs/pauses.ts";
import { recoverRuns } from "./runs/recovery.ts";
import { openSpool } from "./runs/spool.ts";
import { type Clock, isoInstant, systemClock } from "./support/clock.ts";
import { TransientError } from "./support/errors.ts";
import type { Logger } from "./support/log.ts";
import { createRegistry, laneOf } from "./triggers/registry.ts";

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
