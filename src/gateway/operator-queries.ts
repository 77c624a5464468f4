/** Connects the queries of the operations API to the parts that answer them. */
import { type GatewayConfig, writtenIn } from "./config.ts";
import { shareInbox } from "./console/inbox.ts";
import type { QueryParts } from "./console/parts.ts";
import { notificationHealth } from "./notifications.ts";
import { dropNotices, noticeHealth, spoolHealth, triggerHealth } from "./operations/attention.ts";
import { clockHealth, healthOf, unfinishedHealth, waitingFiles } from "./operations/state-of-work.ts";
import type { OperatorQueries } from "./operations-api.ts";
import { liveGateway } from "./runs/command-effects.ts";
import { executeCommand } from "./runs/commands.ts";
import { reviseOutcome } from "./runs/steps/confirm-step.ts";
import { bindingParts } from "./runs.ts";

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
