/** Runs a migration: the gateway over its files, until all of them are at rest or a person stops it. */
import { createWriteStream } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { createLog, type Logger } from "#core/log.ts";
import type { GatewayConfig } from "../../config.ts";
import { type Gateway, type GatewayDependencies, startGateway } from "../../gateway.ts";
import { isLedgerMissing, openLedger } from "../../ledger/open.ts";
import type { Summary } from "../../model.ts";
import type { HistoryFile } from "../plan/history-files.ts";
import { pastUndos } from "../undo/record.ts";
import { ErrorShare } from "./error-share.ts";
import { Intake } from "./intake.ts";
import { LiveTraffic } from "./live-traffic.ts";
import type { Amount, ProgressView, Reached } from "./progress.ts";
import { Throttle } from "./throttle.ts";
import type { ThrottleSettings } from "./throttle-settings.ts";
import { Watch } from "./watch.ts";

export interface Ended {
  /** `paused`: too many errors, with the reason. */
  readonly how: "done" | "stopped" | "paused";
  readonly pausedBecause: string | null;
  readonly summary: Summary;
  /** Concerns for a person beside the findings of the report; not collected when it was stopped. */
  readonly concerns: readonly string[];
  /** Includes the work of earlier calls. */
  readonly reached: Reached;
}

export interface MigrationRun {
  /** The configuration of the migration's own gateway. */
  readonly config: GatewayConfig;
  /** The ledger of the gateway that may run beside it. */
  readonly beside: GatewayConfig["ledger"];
  readonly files: readonly HistoryFile[];
  readonly folder: string;
  readonly throttle: ThrottleSettings;
  readonly stop: AbortSignal;
  /** Opens the view that shows the progress. */
  readonly viewOf: (total: Amount) => ProgressView;
  /** Prints a line once. */
  readonly note: (line: string) => void;
  /** How a template creates missing structure. */
  readonly provisioning: GatewayDependencies["provisioning"];
}

const CHECK_EVERY_MS = 200;
const STOP_GRACE_MS = 30_000;

/** When it resolves, the gateway and its mappers have stopped: the following steps have their memory. */
export async function runMigration(run: MigrationRun): Promise<Ended> {
  const { config, files, folder, throttle: settings, stop, viewOf, note } = run;
  const file = createWriteStream(join(folder, "migration.log"), { flags: "a" });
  const log = createLog(config.log.level, file);
  if (settings.isBehind) lowerPriority(log);
  let view: ProgressView | null = null;
  const live = await watchGateway(run.beside, log, (line) => (view?.note ?? note)(line));
  const watch = new Watch(files, settings.errorsMax === null ? null : new ErrorShare(settings.errorsMax));
  const throttle = new Throttle({ ...settings, isLive: (service) => live.isLive(service) }, systemClock, stop);
  const intake = new Intake(watch, throttle, settings.errorsMax !== null);
  const undone = (await pastUndos(folder)).at(-1);
  let gateway: Gateway | null = null;
  try {
    gateway = await startGateway(config, {
      log,
      onEvent(event) {
        watch.take(event);
        // A failure here is repeated when the whole progress is read.
        if (gateway !== null && watch.isUndecided) intake.decide(gateway).catch(() => undefined);
      },
      admission: throttle,
      intakeRule: intake,
      provisioning: run.provisioning,
      undoneAt: undone?.endedAt ?? undefined,
    });
    await watch.recall(gateway.ledger);
    view = viewOf(watch.total);
    const how = await follow(gateway, { watch, throttle, intake, view, stop });
    // Running calls end, and unsent batches wait for the next call.
    if (how === "stopped") {
      view.note("stopping: running calls end first; Ctrl-C again stops at once");
      await gateway.drain(STOP_GRACE_MS);
    }
    const reached = await watch.look(gateway, throttle, true);
    view.end(reached);
    view = null;
    const summary = await gateway.summary();
    const concerns = how === "stopped" ? [] : await gateway.concerns(false);
    return { how, pausedBecause: throttle.closedBecause, summary, concerns, reached };
  } finally {
    view?.end(null);
    await gateway?.stop();
    await live.stop();
    await new Promise((resolve) => file.end(resolve));
  }
}

interface Following {
  readonly watch: Watch;
  readonly throttle: Throttle;
  readonly intake: Intake;
  readonly view: ProgressView;
  readonly stop: AbortSignal;
}

async function follow(gateway: Gateway, { watch, throttle, intake, view, stop }: Following): Promise<Ended["how"]> {
  for (let wasClosed = throttle.isIntakeClosed; ; ) {
    view.show(await watch.look(gateway, throttle));
    await intake.decide(gateway);
    if (stop.aborted) return "stopped";
    // Runs in progress end, also while no more files are taken.
    if (await gateway.isIdle()) return "done";
    if (throttle.closedBecause !== null && !gateway.isBusy) return "paused";
    if (wasClosed && !throttle.isIntakeClosed) await gateway.pulse();
    wasClosed = throttle.isIntakeClosed;
    await systemClock.sleep(CHECK_EVERY_MS, stop);
  }
}

/** The priority behind another one: a larger number is a lower priority, and it is never raised. */
export function behind(priority: number): number {
  return Math.max(priority, constants.priority.PRIORITY_BELOW_NORMAL);
}

/** The mappers inherit the priority: other work of the machine comes first. */
function lowerPriority(log: Logger): void {
  try {
    setPriority(behind(getPriority()));
  } catch (thrown) {
    log.warn({ err: thrown }, "the priority of the process could not be lowered");
  }
}

/** Watches the ledger of the gateway with this configuration, which may be running. */
async function watchGateway(
  beside: GatewayConfig["ledger"],
  log: Logger,
  note: (line: string) => void,
): Promise<LiveTraffic> {
  const open = async () =>
    isLedgerMissing(beside) ? null : openLedger(beside, { clock: systemClock, log, readOnly: true });
  const live = new LiveTraffic(open, systemClock);
  await live.start((fault) => {
    if (fault === null) log.info("the ledger of the gateway can be read");
    else note(`the migration cannot yield to a running gateway, since its ledger cannot be read: ${fault}`);
  });
  return live;
}
