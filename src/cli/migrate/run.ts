/** Carries a migration out: the gateway over its files, until all of them are at rest or somebody stops it. */
import { createWriteStream } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import { join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { type Gateway, type GatewayDependencies, startGateway } from "../../gateway.ts";
import { isLedgerMissing, openLedger } from "../../ledger/open.ts";
import { ErrorShare } from "../../migration/error-share.ts";
import type { HistoryFile } from "../../migration/history-files.ts";
import { LiveTraffic } from "../../migration/live-traffic.ts";
import { Throttle } from "../../migration/throttle.ts";
import type { Summary } from "../../model.ts";
import { systemClock } from "../../support/clock.ts";
import { createLog, type Logger } from "../../support/log.ts";
import { Intake } from "./intake.ts";
import { type Amount, linesView, Pace, type ProgressView, type Reached } from "./progress.ts";
import { barsView } from "./progress-bars.ts";
import type { ThrottleSettings } from "./throttle-options.ts";
import { Watch } from "./watch.ts";

export interface Ended {
  /** `paused`: too much went wrong, and why. */
  readonly how: "done" | "stopped" | "paused";
  readonly pausedBecause: string | null;
  readonly summary: Summary;
  /** What a person has to look at; not asked for when it was stopped. */
  readonly concerns: readonly string[];
  /** Also of what earlier calls did. */
  readonly reached: Reached;
}

export interface Carriage {
  /** Of the migration's own gateway. */
  readonly config: GatewayConfig;
  /** Of the gateway that may run beside it. */
  readonly beside: GatewayConfig["ledger"];
  readonly files: readonly HistoryFile[];
  readonly folder: string;
  readonly throttle: ThrottleSettings;
  readonly stop: AbortSignal;
  /** Takes lines of progress; null: bars on the terminal. */
  readonly say: ((line: string) => void) | null;
  /** Takes what is said once. */
  readonly tell: (line: string) => void;
  /** How what is missing is created by a template. */
  readonly provisioning: GatewayDependencies["provisioning"];
}

const LOOK_EVERY_MS = 200;
const STOP_GRACE_MS = 30_000;

/** When it answers, the gateway has stopped, and its mappers with it: what is to come has their memory. */
export async function carryOut(carriage: Carriage): Promise<Ended> {
  const { config, files, folder, throttle: settings, stop, say, tell } = carriage;
  const file = createWriteStream(join(folder, "migration.log"), { flags: "a" });
  const log = createLog(config.log.level, file);
  if (settings.isBehind) goBehind(log);
  let view: ProgressView | null = null;
  const live = await watchBeside(carriage.beside, log, (line) => (view?.tell ?? tell)(line));
  const watch = new Watch(files, settings.errorsMax === null ? null : new ErrorShare(settings.errorsMax));
  const throttle = new Throttle(
    { ...settings, isLive: (service) => live.isLive(service) },
    systemClock,
    stop,
  );
  const intake = new Intake(watch, throttle, settings.errorsMax !== null);
  let gateway: Gateway | null = null;
  try {
    gateway = await startGateway(config, {
      log,
      onEvent(event) {
        watch.take(event);
        // What fails here is met again when all is looked at.
        if (gateway !== null && watch.isUndecided) intake.decide(gateway).catch(() => undefined);
      },
      admission: throttle,
      intakeRule: intake,
      provisioning: carriage.provisioning,
    });
    await watch.recall(gateway.ledger);
    view = viewOf(watch.total, say);
    const how = await follow(gateway, { watch, throttle, intake, view, stop });
    // Calls under way are answered, and what is not sent yet waits for the next call.
    if (how === "stopped") {
      view.tell("stopping: calls under way come to their ends first; once more stops at once");
      await gateway.drain(STOP_GRACE_MS);
    }
    const reached = await watch.look(gateway, throttle, true);
    view.end(reached);
    view = null;
    const summary = await gateway.summary();
    const concerns = how === "stopped" ? [] : await gateway.concerns();
    return { how, pausedBecause: throttle.closedBecause, summary, concerns, reached };
  } finally {
    view?.end(null);
    await gateway?.stop();
    await live.stop();
    await new Promise((resolve) => file.end(resolve));
  }
}

function viewOf(total: Amount, say: Carriage["say"]): ProgressView {
  const pace = new Pace(total, systemClock);
  return say === null ? barsView(total, pace, process.stdout) : linesView(total, pace, systemClock, say);
}

interface Following {
  readonly watch: Watch;
  readonly throttle: Throttle;
  readonly intake: Intake;
  readonly view: ProgressView;
  readonly stop: AbortSignal;
}

async function follow(
  gateway: Gateway,
  { watch, throttle, intake, view, stop }: Following,
): Promise<Ended["how"]> {
  for (let wasClosed = throttle.isIntakeClosed; ; ) {
    view.show(await watch.look(gateway, throttle));
    await intake.decide(gateway);
    if (stop.aborted) return "stopped";
    // What is in hand comes to its end, also while no more is taken.
    if (await gateway.isIdle()) return "done";
    if (throttle.closedBecause !== null && !gateway.isBusy) return "paused";
    if (wasClosed && !throttle.isIntakeClosed) await gateway.pulse();
    wasClosed = throttle.isIntakeClosed;
    await systemClock.sleep(LOOK_EVERY_MS, stop);
  }
}

/** The priority, a larger number for a lower one, of who stands behind others: nobody is brought forward by that. */
export function behind(priority: number): number {
  return Math.max(priority, constants.priority.PRIORITY_BELOW_NORMAL);
}

/** The mappers inherit it: what else the machine does comes first. */
function goBehind(log: Logger): void {
  try {
    setPriority(behind(getPriority()));
  } catch (thrown) {
    log.warn({ err: thrown }, "the process could not be put behind others");
  }
}

/** Looks at the ledger of the gateway whose configuration this is, which may be running. */
async function watchBeside(
  beside: GatewayConfig["ledger"],
  log: Logger,
  tell: (line: string) => void,
): Promise<LiveTraffic> {
  const open = async () =>
    isLedgerMissing(beside) ? null : openLedger(beside, { clock: systemClock, log, readOnly: true });
  const live = new LiveTraffic(open, systemClock);
  await live.start((fault) => {
    if (fault === null) log.info("the ledger of the gateway can be read");
    else tell(`no way can be given to a running gateway, since its ledger cannot be read: ${fault}`);
  });
  return live;
}
