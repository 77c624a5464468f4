import { type Clock, isoInstant, systemClock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { openMapping } from "#mapping/workers/open.ts";
import { type Closer, closeAll } from "./closers.ts";
import type { GatewayConfig } from "./config.ts";
import type { MigrationControl } from "./console/migrations.ts";
import { countedLedger } from "./counted-ledger.ts";
import type { Admission } from "./delivery/delivery.ts";
import { DropRegistry, intakeFacts } from "./drops.ts";
import { FleetMember } from "./fleet.ts";
import { type InnerGateway, SPARE_WORKERS } from "./inner.ts";
import { lateReporter } from "./late-readings.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { openLedger } from "./ledger/open.ts";
import { liveConfig } from "./live-config.ts";
import { type Exchange, exchangeParts } from "./live-update.ts";
import type { Outcome, Run, Summary } from "./model.ts";
import { watchAttention } from "./notifications.ts";
import { type FileEvent, openObservers } from "./observers.ts";
import { concernsOf, summarise } from "./operations/state-of-work.ts";
import { type OperationsAccess, openOperationsApi } from "./operations-api.ts";
import { joinQueries } from "./operator-queries.ts";
import type { ProvisioningDependencies } from "./provisioners.ts";
import type { ConfigurationState } from "./reload.ts";
import { claimsBy } from "./runs/claims.ts";
import { FinishFaults } from "./runs/finish-faults.ts";
import { isIdle } from "./runs/idleness.ts";
import { startHousekeeping } from "./runs/maintenance.ts";
import { Pauses } from "./runs/pauses.ts";
import { recoverRuns } from "./runs/recovery.ts";
import { Scheduler } from "./runs/scheduler.ts";
import type { IntakeRule } from "./runs/stages.ts";
import { claimParts, finishGuard, intakeConcurrency, joinSteps, laneMates } from "./runs.ts";
import { recordOutcome, ServiceRegistry } from "./services.ts";
import { startSummary } from "./start-summary.ts";
import { protectState } from "./state-files.ts";
import { openStorage } from "./storage.ts";
import { storedLedger } from "./stored-ledger.ts";
import { openTables } from "./tables.ts";
import { openTriggers } from "./triggers-in-force.ts";
import { type GatewayView, gatewayView } from "./view.ts";

export type { FileEvent, InnerGateway, IntakeRule };

export interface GatewayDependencies {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Called for each event after it was committed. */
  readonly onEvent?: (event: FileEvent) => void;
  /** The path of the configuration, for the log. */
  readonly configFile?: string;
  /** State of the configuration's file, where it is watched for changes. */
  readonly configuration?: ConfigurationState;
  /** Limits the rate of pushes. */
  readonly admission?: Admission;
  /** Says when no file is fetched and mapped. Call `pulse` when its result changes. */
  readonly intakeRule?: IntakeRule;
  /** How the sites, sources and variables of triggers with a template are created. */
  readonly provisioning?: ProvisioningDependencies | undefined;
  /** When a person last removed at the services what was delivered before: all is sent again since then. */
  readonly undoneAt?: string | undefined;
  /** The migrations beside this gateway; none are shown when absent. */
  readonly migrations?: MigrationControl | undefined;
  /** Present for a gateway inside a hub. */
  readonly inner?: InnerGateway | undefined;
}

export interface Gateway extends OperationsAccess {
  readonly view: GatewayView;
  readonly ledger: Ledger;
  /** URLs of the HTTP intakes, by the names of their drops. */
  readonly intakes: Readonly<Record<string, string>>;
  /** True while steps of runs are running. */
  readonly isBusy: boolean;
  /** Services that cannot be used now, with the reason. */
  serviceWaits(): ReadonlyMap<string, string>;
  /** Why a run is not in progress, as far as the scheduler knows. */
  waitReason(run: Run): string | undefined;
  /**
   * True when no file is settling, every run is at rest, and every drop was polled after that.
   * `withoutStuck`: runs that only fail are not waited for.
   */
  isIdle(withoutStuck?: boolean): Promise<boolean>;
  /** Counts the files seen or worked on since the start, and the points of their runs. */
  summary(): Promise<Summary>;
  /**
   * Lists everything that needs a person: quarantined, held, discarded or unsent runs, and drops that cannot
   * be polled. `ofResting` false: without the runs at rest.
   */
  concerns(ofResting?: boolean): Promise<string[]>;
  /**
   * Applies another configuration without stopping: all services, drops and triggers that differ or, when it
   * throws, none of them. `assemble`: sections differ that the gateway is built on, so that a new gateway has
   * to replace this one.
   */
  exchange(next: GatewayConfig): Promise<Exchange>;
  /**
   * Reads the triggers of a service, or of all services, now instead of at the next time: they are in force when it
   * resolves. Throws `TransientError` when they cannot be read.
   */
  readTriggers(service?: string): Promise<void>;
  /** Records an outcome that the service reported by another way than its webhook. */
  reportOutcome(outcome: Outcome): Promise<boolean>;
  /** Resolves when the scheduler has gone through its loop once more: a sign of life. */
  pulse(): Promise<void>;
  /** Starts no new work, and resolves when running calls and steps have ended, or after `graceMs`. */
  drain(graceMs: number): Promise<void>;
  /** `graceMs`: the grace period for running calls and steps. */
  stop(graceMs?: number): Promise<void>;
}

export async function startGateway(config: GatewayConfig, dependencies: GatewayDependencies): Promise<Gateway> {
  const closers: Closer[] = [];
  try {
    return await assemble(config, dependencies, closers);
  } catch (thrown) {
    await closeAll(closers);
    throw thrown;
  }
}

async function assemble(first: GatewayConfig, given: GatewayDependencies, closers: Closer[]): Promise<Gateway> {
  const live = liveConfig(first);
  const { config } = live;
  const { log, clock = systemClock, inner } = given;
  const startedAt = isoInstant(clock.now());
  const observers = await openObservers(config, { log, clock, onEvent: given.onEvent }, closers);
  const { metrics, tracer, onEvent } = observers;
  given.configuration?.register(metrics.registry);
  protectState(config, log);
  const fleet = new FleetMember(inner?.onNodeLeft);
  const opened = await openLedger(config.ledger, { clock, log, onEvent, watch: fleet.watch });
  const ledger = countedLedger(storedLedger(opened, inner), observers.onRun);
  closers.push(() => ledger.close());
  const onRun = (id?: string) => scheduler.wake(id);
  const { spool, quota } = await openStorage(config.spool, { clock, log, ledger, metrics, onRun });
  const pauses = await Pauses.read(ledger, (all) => metrics.countPauses(all));
  const { lookups, zones } = await openTables(config, spool.root, { clock, ledger, inner });

  // The operations API listens before the other parts are opened: queries and outcomes can arrive by then.
  const api = await openOperationsApi(config, { ledger, log, clock, observers }, closers);

  const triggers = await openTriggers(live, { ledger, clock, log, metrics, inner }, closers);
  const intake = intakeFacts(config, { registry: triggers.registry, clock, spool: spool.root, quota, ledger });
  const drops = new DropRegistry({ log, intake, hubDrop: inner?.hubDrop }, () => ({
    ...{ journal: ledger, claim, lanesOf, clock, log, pauses, fleet },
    laneMates: (name: string) => laneMates(config, name),
    onPoll: (...poll) => metrics.pollEnded(...poll),
  }));
  closers.push(() => drops.close());
  const onLate = lateReporter(() => ({ config, ledger, pauses, versions, clock, log }));
  const spare = inner === undefined ? 0 : SPARE_WORKERS;
  const { pool, versions, ...mapping } = openMapping(config, spool, { log, clock, ledger, onLate, spare });
  closers.push(() => Promise.all([mapping.close(), spool.close()]));
  mapping.prepare(config.triggers.map((trigger) => trigger.mapper));
  const services = new ServiceRegistry({
    ...{ ledger, log, clock, tracer, webhookUrl: api.webhookUrl },
    ...{ onPush: metrics, onRefused: given.configuration?.recheck, admission: given.admission, inner },
  });
  closers.push(() => services.close());
  services.configure(config);
  const dropEntry = (name: string) => drops.entry(name);
  const shared = { ledger, log, dropEntry, lookups, zones, versions, finishFaults: new FinishFaults(clock) };
  const claiming = { registry: triggers.registry, pauses, clock, onRun, inner, undoneAt: given.undoneAt };
  const { claim, lanesOf } = claimsBy(claimParts(config, { ...shared, ...claiming }));
  const more = { spool, quota, pool, inner, clock, tracer, claim, onRun, ties: given.provisioning };
  const steps = joinSteps(config, { ...shared, ...more, serviceEntry: (name) => services.get(name) }, closers);
  const recovery = await recoverRuns(steps);

  const scheduler = new Scheduler(steps, {
    ...intakeConcurrency(config.workers, inner),
    deliveryConcurrency: config.push.concurrency,
    intakeRule: given.intakeRule,
    onService: observers.onService,
  });
  closers.push(() => scheduler.stop());

  await drops.add(config.drops);
  closers.push(() => drops.stopWatching());
  const stores = { ledger, spool, quota, pauses, lookups, versions };
  const known = { ...given, ...shared, ...stores, drops, services, scheduler, triggers, observers, live, clock };
  const attention = await watchAttention(config, { ...known, startedAt }, closers);
  joinQueries(api.queries, config, { ...known, ...attention, startedAt, steps, closers });

  await mapping.start(config.triggers.map((trigger) => trigger.mapper));
  await Promise.all([drops.open(), triggers.services.firstAttempt()]);
  const guard = finishGuard(config, { ...shared, clock, scratch: spool.root });
  closers.push(() => fleet.leave());
  await fleet.join({ ...known, watchers: () => drops.watchers(), configured: () => config.drops });
  closers.push(guard.start());
  triggers.offerTo({ drops, mapping, scheduler, log });
  await drops.start();
  attention.start();
  scheduler.wake();
  closers.push(startHousekeeping({ ...stores, scheduler, clock, log, keepMs: config.ledger.keep }));
  const summary = { ...startSummary(config, given.configFile), operations: api.url, intakes: drops.intakes() };
  log.info({ ...summary, ...recovery }, "gateway started");

  const drain = (graceMs: number) => drainParts({ drops, services, scheduler, clock }, graceMs);
  return {
    view: gatewayView(metrics.registry, api.queries, { ledger, spool }),
    ledger,
    ...api.access,
    get intakes() {
      return drops.intakes();
    },
    get isBusy() {
      return scheduler.isBusy;
    },
    serviceWaits: () => scheduler.serviceWaits(),
    waitReason: (run) => scheduler.waitReason(run),
    isIdle: async (withoutStuck = false) =>
      guard.isIdle && (await isIdle(drops.watchers(), scheduler, withoutStuck)) && guard.isIdle,
    summary: () => summarise(ledger, config.drops, startedAt),
    concerns: async (all) => concernsOf(drops.statuses(), ledger, await scheduler.pending(), startedAt, all),
    exchange: (next) => exchangeParts(next, { ...known, fleet, mapping }),
    reportOutcome: (outcome) => recordOutcome(outcome, ledger, (runId) => api.queries.onOutcome(runId)),
    pulse: () => scheduler.pulse(),
    readTriggers: (service) => triggers.services.checkNow(service),
    drain,
    stop: async (graceMs = 0) => {
      if (graceMs > 0) await drain(graceMs);
      await closeAll(closers);
      log.info("gateway stopped");
    },
  };
}

/** Starts no new work, and waits until running work has ended or the time is over. */
async function drainParts(
  parts: {
    readonly drops: DropRegistry;
    readonly services: ServiceRegistry;
    readonly scheduler: Scheduler;
    readonly clock: Clock;
  },
  graceMs: number,
): Promise<void> {
  await parts.drops.stopWatching();
  const over = new AbortController();
  const drained = Promise.all([parts.services.drain(), parts.scheduler.drain()]).finally(() => over.abort());
  await parts.clock.sleep(graceMs, over.signal);
  drained.catch(() => undefined); // Work that has not ended by now is aborted by `stop`.
}
