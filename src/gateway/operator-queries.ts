/** Connects the queries of the operations API to the parts that answer them. */

import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { OpenMapping } from "#mapping/workers/open.ts";
import type { Closer } from "./closers.ts";
import { type GatewayConfig, writtenIn } from "./config.ts";
import { shareInbox } from "./console/inbox.ts";
import type { MigrationControl } from "./console/migrations.ts";
import type { DropRegistry } from "./drops.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { LiveConfig } from "./live-config.ts";
import type { IsoInstant } from "./model.ts";
import { notificationHealth } from "./notifications.ts";
import type { Observers } from "./observers.ts";
import type { Concern } from "./operations/attention.ts";
import { dropNotices, noticeHealth } from "./operations/drop-notices.ts";
import type { LateFiles } from "./operations/late-files.ts";
import { triggerHealth } from "./operations/listed-triggers.ts";
import type { Notifier } from "./operations/notifier.ts";
import { spoolHealth } from "./operations/spool-state.ts";
import { clockHealth, healthOf, waitingFiles } from "./operations/state-of-work.ts";
import { unfinishedHealth } from "./operations/unfinished-files.ts";
import type { WaitingLanes } from "./operations/waiting-lanes.ts";
import type { OperatorQueries } from "./operations-api.ts";
import type { ConfigurationState } from "./reload.ts";
import { liveGateway } from "./runs/command-effects.ts";
import { executeCommand } from "./runs/commands.ts";
import type { FinishFaults } from "./runs/finish-faults.ts";
import type { LookupStore } from "./runs/lookups.ts";
import type { Pauses } from "./runs/pauses.ts";
import type { Scheduler } from "./runs/scheduler.ts";
import { reviseOutcome } from "./runs/steps/confirm-step.ts";
import type { RunSteps } from "./runs/steps/steps.ts";
import { bindingParts } from "./runs.ts";
import type { ServiceRegistry } from "./services.ts";
import type { SpoolQuota } from "./spool/quota.ts";
import type { Spool } from "./spool/spool.ts";
import type { TriggersInForce } from "./triggers-in-force.ts";

export interface QueryParts {
  readonly ledger: Ledger;
  readonly spool: Spool;
  readonly quota: SpoolQuota;
  readonly pauses: Pauses;
  readonly lookups: LookupStore;
  readonly versions: Pick<OpenMapping["versions"], "refused">;
  readonly drops: DropRegistry;
  readonly services: ServiceRegistry;
  readonly scheduler: Scheduler;
  readonly triggers: Pick<TriggersInForce, "listed" | "registry">;
  readonly late: LateFiles;
  readonly lanes: WaitingLanes;
  readonly notifier: Pick<Notifier, "failing">;
  /** Everything that needs attention beside the runs of files. */
  readonly concerns: () => Promise<readonly Concern[]>;
  readonly steps: Pick<RunSteps, "isRemoved">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly startedAt: IsoInstant;
  readonly live: Pick<LiveConfig, "file">;
  readonly finishFaults: FinishFaults;
  readonly migrations?: MigrationControl | undefined;
  /** Path of the configuration. */
  readonly configFile?: string | undefined;
  readonly observers: Pick<Observers, "services" | "rates" | "live">;
  /** Receives what ends the parts that the handlers open. */
  readonly closers: Closer[];
  /** State of the configuration's file, where it is watched for changes. */
  readonly configuration?: Pick<ConfigurationState, "health" | "reloads"> | undefined;
}

/** Events of one second that are read for browsers from a ledger that nodes share. */
const LIVE_EVENTS_MAX = 200;

export function joinQueries(queries: OperatorQueries, config: GatewayConfig, parts: QueryParts): void {
  const { ledger, spool, pauses, lookups, versions, drops, scheduler, late, lanes, clock, log } = parts;
  queries.onOutcome = async (runId) => {
    await reviseOutcome(runId, ledger);
    scheduler.wake(runId);
  };
  queries.drops = () => drops.statuses();
  queries.waiting = async (query) =>
    waitingFiles(
      ledger,
      drops.statuses(),
      (run) => scheduler.waitReason(run),
      await lanes.all(),
      clock.now().epochMilliseconds,
      query,
    );
  queries.written = () => writtenIn(parts.live.file()) ?? {};
  queries.unfinished = () => parts.finishFaults.list();
  queries.lanes = () => lanes.all();
  const live = liveGateway(scheduler, () => drops.watchers(), parts.services, log);
  const { isRemoved } = parts.steps;
  const binding = () => bindingParts(config, lookups);
  queries.command = (body) => executeCommand(body, { ledger, spool, pauses, binding: binding(), log, live, isRemoved });
  const inbox = shareInbox(config, parts);
  parts.observers.live.connectTo({
    attention: async () => (await inbox.next()).total,
    drops: () => drops.statuses(),
    ...(ledger.fleet.recheckMs === null
      ? {}
      : { changes: (after: number | null) => ledger.files.eventsAfter(after, LIVE_EVENTS_MAX) }),
  });
  queries.console = {
    ...parts,
    inbox,
    health: () => queries.health(),
    binding,
    // The type of the result follows from the command.
    execute: (command) => queries.command(command) as never,
  };
  const names = () => ({
    drops: config.drops.map(({ name }) => name),
    services: config.services.map(({ name }) => name),
  });
  const work = async () =>
    healthOf(drops.statuses(), names(), scheduler.serviceWaits(), ledger, late.missing(), await lanes.all());
  queries.health = async () => [
    ...(parts.configuration === undefined ? [] : [parts.configuration.health()]),
    ...(await work()),
    spoolHealth(await parts.quota.state()),
    ...(await unfinishedHealth(parts.finishFaults, ledger)),
    ...clockHealth(parts.services.clockFaults()),
    ...notificationHealth(parts.notifier),
    ...triggerHealth(await parts.triggers.listed()),
    ...noticeHealth(await dropNotices(ledger, parts.clock)),
    ...pauses.health(),
    ...versions.refused().map(({ mapper, reason }) => ({ part: `mapper ${mapper}`, ready: true, reason })),
  ];
}
