import type { Registry } from "prom-client";
import { type Clock, isoInstant, systemClock } from "#core/clock.ts";
import { TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { packageVersion } from "#core/package/version.ts";
import { filesOf, logNarrowed, narrowModes } from "#core/private-files.ts";
import { resultOf } from "#core/promises.ts";
import { reasonOf } from "#mapping/rejections.ts";
import type { KeptVersions } from "#mapping/workers/mapper-versions.ts";
import { openMapping } from "#mapping/workers/open.ts";
import { type LateReadings, lateWords } from "#mapping/workers/pool.ts";
import { type Closer, closeAll } from "./closers.ts";
import type { GatewayConfig } from "./config.ts";
import type { MigrationControl } from "./console/migrations.ts";
import type { Admission } from "./delivery/delivery.ts";
import { DropRegistry, intakeFacts } from "./drops.ts";
import { FleetMember } from "./fleet.ts";
import { type InnerGateway, SPARE_WORKERS } from "./inner.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { ledgerWords, openLedger } from "./ledger/open.ts";
import { ledgerFile } from "./ledger/options.ts";
import { liveConfig } from "./live-config.ts";
import { type Exchange, exchangeParts } from "./live-update.ts";
import type { Outcome, Run, Summary } from "./model.ts";
import { watchAttention } from "./notifications.ts";
import { type FileEvent, openObservers } from "./observers.ts";
import { placedAt } from "./operation-rows.ts";
import { measureSpool } from "./operations/attention.ts";
import { concernsOf, countUnresolved, type HealthPart, heldRuns, summarise } from "./operations/state-of-work.ts";
import { type OperationsAccess, type OperatorQueries, openOperationsApi } from "./operations-api.ts";
import { joinQueries } from "./operator-queries.ts";
import type { ProvisioningDependencies } from "./provisioners.ts";
import type { ConfigurationState } from "./reload.ts";
import { claimsBy } from "./runs/claims.ts";
import { FinishFaults } from "./runs/finish-faults.ts";
import { type LookupStore, openLookupStore } from "./runs/lookups.ts";
import { startHousekeeping } from "./runs/maintenance.ts";
import { PAUSED_BY_GATEWAY, Pauses } from "./runs/pauses.ts";
import { recoverRuns } from "./runs/recovery.ts";
import { isIdle, Scheduler } from "./runs/scheduler.ts";
import { SourceZones } from "./runs/source-zones.ts";
import type { IntakeRule } from "./runs/stages.ts";
import { mapperText } from "./runs/steps/steps.ts";
import { claimParts, finishGuard, intakeConcurrency, joinSteps, laneMates } from "./runs.ts";
import { recordOutcome, ServiceRegistry } from "./services.ts";
import type { PlacedReading } from "./spool/placed-readings.ts";
import { SpoolQuota } from "./spool/quota.ts";
import { openSpool, type Spool } from "./spool/spool.ts";
import { openTriggers } from "./triggers-in-force.ts";

const ATTEMPTS = 10;
const RETRY_MS = 1_000;
const never = new AbortController().signal;

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

// Protects the ledger, the spool and the files beside them: they hold keys, file contents and names that no other
// user may read.

/** Called before any of these files is opened. Throws `ConfigError` when a mode is too wide and cannot be changed. */
function protectState({ ledger, spool }: Pick<GatewayConfig, "ledger" | "spool">, log: Logger): void {
  const places = [ledgerFile(ledger), spool.path].filter((path) => path !== null);
  logNarrowed(narrowModes(places.flatMap(filesOf)), log);
}

/** The summary that a started gateway writes as one line of the log. */
function startSummary(config: GatewayConfig, configFile: string | undefined) {
  return {
    version: packageVersion(),
    ...(configFile === undefined ? {} : { config: configFile }),
    drops: config.drops.map(({ name, kind }) => `${name} (${kind})`),
    triggers: config.triggers.map(({ name, mapper, state }) =>
      state === "Active" || state === "Updated" ? `${name} (${mapper})` : `${name} (${mapper}, ${state})`,
    ),
    services: config.services.map(({ name, base }) => `${name} (${new URL(base).host})`),
    ledger: ledgerWords(config.ledger),
    spool: config.spool.path,
  };
}

// The ledger of a gateway inside a hub, with the places of files as the hub knows them.

/**
 * A hub lists a file only until it is taken, so no listing shows whether a file at rest is still stored: the hub is
 * asked. A version that was removed, or offered again since, has gone.
 */
export function storedLedger(ledger: Ledger, inner: InnerGateway | undefined): Ledger {
  if (inner === undefined) return ledger;
  return {
    ...ledger,
    async restingIn(states, limit) {
      const resting = await ledger.restingIn(states, limit);
      const versions = await inner.storedVersions(resting.map(({ run }) => run));
      return resting.map(({ run, arrival }, at) => {
        const stored = resultOf(versions[at]);
        if (stored === "no account") return { run, arrival };
        const isStored = stored.mtime === arrival.mtime;
        return { run, arrival: { ...arrival, goneAt: isStored ? null : (arrival.goneAt ?? run.changedAt) } };
      });
    },
  };
}

// The tables that runs are bound to.

interface Tables {
  readonly lookups: LookupStore;
  /** Null for a gateway that is not inside a hub. */
  readonly zones: SourceZones | null;
}

async function openTables(
  { lookups: configured }: Pick<GatewayConfig, "lookups">,
  spoolRoot: string,
  parts: {
    readonly clock: Clock;
    readonly ledger: Pick<Ledger, "shared">;
    readonly inner: Pick<InnerGateway, "zoneTables"> | undefined;
  },
): Promise<Tables> {
  const { clock, ledger, inner } = parts;
  const lookups = await openLookupStore(configured, spoolRoot, clock, ledger.shared?.content);
  return { lookups, zones: inner === undefined ? null : new SourceZones(inner.zoneTables, lookups, clock) };
}

// A gateway as the program sees it that it is a part of: its state, and commands.

interface GatewayView {
  readonly metrics: Registry;
  /** The state of each part, with the reason. */
  health(): Promise<readonly HealthPart[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
  /** The readings of an operation at a date, with their rows, as far as the spool has them. */
  placedAt(operationId: string, atMs: number): Promise<readonly PlacedReading[]>;
  /** Gives up a run, as `headgate cancel` does. Throws `RejectedError` when there is nothing left to cancel. */
  cancel(run: string, by: string, why: string): Promise<unknown>;
}

function gatewayView(
  metrics: Registry,
  queries: Pick<OperatorQueries, "health" | "command">,
  { ledger, spool }: { readonly ledger: Ledger; readonly spool: Pick<Spool, "root"> },
): GatewayView {
  return {
    metrics,
    health: () => queries.health(),
    needAttention: () => countUnresolved(ledger),
    placedAt: (operationId, atMs) => placedAt(operationId, atMs, { ledger, spool }),
    cancel: (run, by, why) => queries.command({ order: "cancel", run, by, why }),
  };
}

/** A ledger that counts each transition of a run in the metrics once it is committed. */
function countedLedger(ledger: Ledger, count: (run: Run, mappedNow: boolean) => void): Ledger {
  const counted =
    <Args extends unknown[], Moved extends Run | null>(move: (...args: Args) => Promise<Moved>, mappedNow = false) =>
    async (...args: Args): Promise<Moved> => {
      const run = await move(...args);
      if (run !== null) count(run, mappedNow);
      return run;
    };
  return {
    ...ledger,
    openRun: counted(ledger.openRun),
    async openRuns(openings) {
      const opened = await ledger.openRuns(openings);
      for (const { run } of opened) if (run !== null) count(run, false);
      return opened;
    },
    advanceRun: counted(ledger.advanceRun),
    async beginDelivery(...args) {
      const begun = await ledger.beginDelivery(...args);
      if (begun.run !== null) count(begun.run, false);
      return begun;
    },
    resumeHeld: counted(ledger.resumeHeld),
    async replaceHeld(...args) {
      const replaced = await ledger.replaceHeld(...args);
      for (const run of [replaced.held, replaced.run]) count(run, false);
      return replaced;
    },
    recordMapped: counted(ledger.recordMapped, true),
    async advanceRuns(advances) {
      const results = await ledger.advanceRuns(advances);
      for (const [at, { run }] of results.entries())
        if (run !== null)
          for (const { to } of advances[at]?.through ?? []) count({ ...run, state: to }, to === "mapped");
      return results;
    },
    acceptBatch: counted(ledger.acceptBatch),
    recordOpened: counted(ledger.recordOpened),
  };
}

// Opens the spool, and reports how full it is.

interface Storage {
  readonly spool: Spool;
  readonly quota: SpoolQuota;
}

/** The caller closes the spool, and with it the quota. */
export async function openStorage(
  options: GatewayConfig["spool"],
  {
    metrics,
    ledger,
    onRun,
    ...rest
  }: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: { readonly registry: Registry };
    readonly ledger: Pick<Ledger, "runsIn" | "shared">;
    /** Called for a run that the spool had no space for and may have now. */
    readonly onRun: (id: string) => void;
  },
): Promise<Storage> {
  const spool = await openSpool(options);
  const { shared } = ledger;
  const quota = new SpoolQuota(spool.root, options, {
    ...rest,
    held: () => heldRuns(ledger),
    onSpace: (ids) => {
      for (const id of ids) onRun(id);
    },
    shared: shared === null ? null : () => shared.intake.allWaitingBytes(),
  });
  measureSpool(metrics.registry, quota);
  return { spool: releasing(spool, quota), quota };
}

/** Releases quota when files leave the spool. */
function releasing(spool: Spool, quota: SpoolQuota): Spool {
  const freeing =
    <Args extends readonly unknown[], Value>(work: (...args: Args) => Promise<Value>) =>
    (...args: Args) =>
      work(...args).finally(() => quota.freed());
  return {
    ...spool,
    retire: freeing(spool.retire),
    discard: freeing(spool.discard),
    close() {
      quota.close();
      return spool.close();
    },
  };
}

// A mapper that gives readings after its file was written: they are lost, and the next files of that version would lose
// theirs too. So the run says it, and the triggers that use the mapper claim nothing until a person resumes them.

interface LateReadingsParts {
  readonly config: Pick<GatewayConfig, "triggers">;
  readonly ledger: Pick<Ledger, "run" | "noteRun">;
  readonly pauses: Pick<Pauses, "reason" | "set">;
  readonly versions: Pick<KeptVersions, "here">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** `partsOf`: the pool that reports is made together with the versions. */
function lateReporter(partsOf: () => LateReadingsParts): (late: LateReadings) => void {
  return (late) => void onLateReadings(late, partsOf());
}

async function onLateReadings(late: LateReadings, parts: LateReadingsParts): Promise<void> {
  const { log, clock } = parts;
  const { runId, file, words } = late;
  const code = "HG-MAP-041";
  log.warn({ run: runId, file, code }, lateWords(words));
  for (let attempt = 1; ; attempt += 1) {
    try {
      const run = await parts.ledger.run(runId);
      // Null for a trial, such as of the playground.
      if (run !== null) await recordLate(run, words, parts);
      return;
    } catch (thrown) {
      if (!(thrown instanceof TransientError) || attempt === ATTEMPTS) {
        log.error({ run: runId, file, code }, `readings that came late cannot be recorded: ${wordsOf(thrown)}`);
        return;
      }
      await clock.sleep(RETRY_MS, never);
    }
  }
}

async function recordLate(run: Run, words: string, parts: LateReadingsParts): Promise<void> {
  const { ledger, pauses, config, versions } = parts;
  const { mapper, trigger } = run.binding;
  const detail = `${mapperText(mapper)} gave readings too late: ${lateWords(words)}`;
  const reason = reasonOf("HG-MAP-041", detail);
  await ledger.noteRun(run.id, { reason, event: "run.warned", detail });
  const inForce = await versions.here(mapper.name).catch(() => null);
  // Another version has to show itself what it does.
  if (inForce !== null && inForce.digest !== mapper.digest) return;
  const using = config.triggers.filter((one) => one.mapper === mapper.name).map(({ name }) => name);
  for (const name of new Set([trigger, ...using])) {
    if (pauses.reason("trigger", name) !== null) continue;
    const why = `${detail} (run ${run.id}, ${run.path}); correct the mapper and replay that run first`;
    await pauses.set({ kind: "trigger", name, by: PAUSED_BY_GATEWAY, why });
  }
}
