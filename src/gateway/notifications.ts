/** Connects the sources of concerns to the receivers of notifications. */
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { Closer } from "./closers.ts";
import type { GatewayConfig } from "./config.ts";
import type { DropRegistry } from "./drops.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { nodeName } from "./ledger/options.ts";
import type { IsoInstant } from "./model.ts";
import type { Observers } from "./observers.ts";
import {
  type AttentionSources,
  type Concern,
  dropNotices,
  findAttention,
  findOtherConcerns,
} from "./operations/attention.ts";
import type { ServiceLog } from "./operations/attention-log.ts";
import { LateFiles } from "./operations/late-files.ts";
import type { GatewayMetrics } from "./operations/metrics.ts";
import { NotificationState } from "./operations/notification-state.ts";
import { Notifier } from "./operations/notifier.ts";
import { createReceiver } from "./operations/receivers.ts";
import type { HealthPart } from "./operations/state-of-work.ts";
import { LaneLog, WaitingLanes } from "./operations/waiting-lanes.ts";
import type { ConfigurationState } from "./reload.ts";
import type { FinishFaults } from "./runs/finish-faults.ts";
import type { Pauses } from "./runs/pauses.ts";
import type { Scheduler } from "./runs/scheduler.ts";
import type { ServiceRegistry } from "./services.ts";
import type { SpoolQuota } from "./spool/quota.ts";
import type { Spool } from "./spool/spool.ts";
import { missingFiles } from "./triggers/expectation.ts";
import type { TriggersInForce } from "./triggers-in-force.ts";

const NOTIFICATIONS_FILE = "notifications.json";

export interface AttentionWatch {
  readonly late: LateFiles;
  readonly lanes: WaitingLanes;
  readonly notifier: Notifier;
  /** Everything that needs attention beside the runs of files. */
  concerns(): Promise<readonly Concern[]>;
  start(): void;
}

/** Starts the notifier, which finds concerns and notifies the receivers. */
export async function watchAttention(
  config: GatewayConfig,
  parts: Omit<NotifierSources, "services" | "registry" | "late" | "lanes" | "metrics"> & {
    readonly scheduler: Pick<Scheduler, "waitReason">;
    readonly observers: Pick<Observers, "metrics" | "services">;
    readonly services: NotifierSources["registry"];
    readonly startedAt: IsoInstant;
  },
  closers: Closer[],
): Promise<AttentionWatch> {
  const { observers, scheduler, startedAt, services: registry, ...known } = parts;
  const { metrics, services } = observers;
  const late = lateFiles(config, parts.ledger, { metrics, clock: parts.clock, log: parts.log, startedAt });
  closers.push(() => late.stop());
  const { ledger, clock, log } = parts;
  const lanes = new WaitingLanes({
    ...{ ledger, clock, afterMs: config.operations.laneAfter },
    waitReason: (run) => scheduler.waitReason(run),
    isDown: (service) => services.states().get(service)?.state === "down",
  });
  const laneLog = new LaneLog({ lanes, clock, log });
  closers.push(() => laneLog.stop());
  const sources = attentionSources(config, { ...known, services, registry, late, lanes, metrics });
  const notifier = await openNotifier(config, { ...known, metrics }, sources);
  closers.push(() => notifier.stop());
  const start = () => {
    late.start();
    laneLog.start();
    notifier.start();
  };
  const concerns = async () => (await findOtherConcerns(sources)).concerns;
  return { late, lanes, notifier, concerns, start };
}

interface NotifierSources {
  readonly ledger: Ledger;
  readonly spool: Pick<Spool, "root">;
  readonly quota: Pick<SpoolQuota, "state">;
  readonly drops: Pick<DropRegistry, "statuses">;
  readonly services: ServiceLog;
  readonly registry: Pick<ServiceRegistry, "clockFaults">;
  readonly triggers: Pick<TriggersInForce, "listed">;
  readonly pauses: Pick<Pauses, "byGateway">;
  readonly late: Pick<LateFiles, "missing">;
  readonly lanes: Pick<WaitingLanes, "overdue">;
  readonly metrics: Pick<GatewayMetrics, "countNotification">;
  readonly finishFaults: FinishFaults;
  readonly configFile?: string | undefined;
  readonly configuration?: Pick<ConfigurationState, "refused"> | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

async function openNotifier(
  config: GatewayConfig,
  {
    spool,
    metrics,
    clock,
    log,
    configFile,
  }: Pick<NotifierSources, "spool" | "metrics" | "clock" | "log" | "configFile">,
  sources: AttentionSources,
): Promise<Notifier> {
  const options = config.notifications;
  return new Notifier({
    options,
    receivers: options.receivers.map((one) => createReceiver(one, clock)),
    state: await NotificationState.read(join(spool.root, NOTIFICATIONS_FILE), log),
    gateway: gatewayName(config, configFile),
    find: () => findAttention(sources),
    count: (receiver, accepted) => metrics.countNotification(receiver, accepted),
    clock,
    log,
  });
}

function attentionSources(config: GatewayConfig, parts: NotifierSources): AttentionSources {
  const { ledger, clock, quota, drops, services, triggers, pauses, late, lanes } = parts;
  return {
    ledger,
    node: nodeName(config.ledger),
    drops: () => drops.statuses(),
    services: () => config.services.map(({ name }) => ({ name, state: services.states().get(name) ?? null })),
    clocks: () => parts.registry.clockFaults(),
    late: () => late.missing(),
    lanes: () => lanes.overdue(),
    notices: () => dropNotices(ledger, clock),
    triggers: () => triggers.listed(),
    pauses: () => pauses.byGateway(),
    unfinished: parts.finishFaults,
    refusedConfiguration: () => parts.configuration?.refused() ?? null,
    spool: () => quota.state(),
    spoolShare: config.notifications.spoolShare,
  };
}

/** The given name or that of the node; else the machine and the configuration, since one machine may have several. */
export function gatewayName(
  { ledger, notifications }: Pick<GatewayConfig, "ledger" | "notifications">,
  configFile: string | undefined,
): string {
  const machine = configFile === undefined ? hostname() : `${hostname()} (${resolve(configFile)})`;
  return notifications.name ?? nodeName(ledger) ?? machine;
}

export function notificationHealth(notifier: Pick<Notifier, "failing">): readonly HealthPart[] {
  return [...notifier.failing().values()].map((reason) => ({ part: "notifications", ready: true, reason }));
}

/** Connects the expectations of the triggers to the watch for late files. */
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
    count: (missing) => metrics.countLate(missing.map((file) => file.trigger)),
    clock,
    log,
  });
}
