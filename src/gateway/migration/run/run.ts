/** Runs a migration: the gateway over its files, until all of them are at rest or a person stops it. */
import { createWriteStream } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "#core/clock.ts";
import { createLog, type Logger } from "#core/log.ts";
import type { GatewayConfig } from "../../config.ts";
import {
  type FileEvent,
  type Gateway,
  type GatewayDependencies,
  type IntakeRule,
  startGateway,
} from "../../gateway.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { isLedgerMissing, openLedger } from "../../ledger/open.ts";
import type { Run, Summary } from "../../model.ts";
import { runStatesThat, STARTED_STATES } from "../../states.ts";
import type { HistoryFile } from "../plan/history-files.ts";
import { allRuns } from "../report/delivered.ts";
import { pastUndos } from "../undo/record.ts";
import { ErrorShare } from "./error-share.ts";
import { type Amount, FILES_SHOWN, type ProgressView, type Reached } from "./progress.ts";
import { Throttle, type ThrottleSettings } from "./throttle.ts";

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

/** Between two checks, in milliseconds. */
const TRAFFIC_CHECK_EVERY_MS = 1_000;

/** A run that has not moved for this time waits for something itself, or its gateway has stopped. */
const STALE_MS = 60_000;
const RUNS_SCANNED = 50;

/** Runs in these states do not change without a command, except to be confirmed. */
const ENDED = runStatesThat(({ isOpen }) => !isOpen);
/** Reading the progress may take one fiftieth of the time. */
const READ_SHARE = 50;
const EVER = "1970-01-01T00:00:00Z";
const ENDS: ReadonlySet<string> = new Set([
  ...ENDED.map((state) => `run.${state}`),
  "arrival.unmatched",
  "arrival.duplicate",
]);

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

/**
 * Decides whether a migration takes more files: not outside of its hours, not after too many errors, and not before
 * ended runs were counted.
 */
class Intake implements IntakeRule {
  readonly byGroups: boolean;
  readonly #watch: Watch;
  readonly #throttle: Throttle;
  /** True when files were not taken because ended runs were not counted yet. */
  #waiting = false;
  #deciding: Promise<void> | null = null;

  constructor(watch: Watch, throttle: Throttle, byGroups: boolean) {
    this.#watch = watch;
    this.#throttle = throttle;
    this.byGroups = byGroups;
  }

  readonly isClosed = (): boolean => {
    if (!this.#watch.isUndecided) return this.#throttle.isIntakeClosed;
    this.#waiting = true;
    return true;
  };

  /** Counts ended runs, closes the intake after too many errors, and otherwise lets the next files be taken. */
  decide(gateway: Gateway): Promise<void> {
    this.#deciding ??= this.#decide(gateway).finally(() => {
      this.#deciding = null;
    });
    return this.#deciding;
  }

  async #decide(gateway: Gateway): Promise<void> {
    do {
      const tooMuch = await this.#watch.tooMuch(gateway.ledger);
      if (tooMuch !== null) this.#throttle.close(tooMuch);
      if (!this.#waiting) continue;
      this.#waiting = false;
      if (!this.isClosed()) await gateway.pulse();
    } while (this.#watch.isUndecided);
  }
}

/**
 * Tracks the progress of a migration: files by the events of the ledger, points by its sums, and the reasons of
 * waits.
 */
class Watch {
  readonly #sizes: Map<string, number>;
  readonly #total: Amount;
  readonly #errors: ErrorShare | null;
  /** Runs that came to rest, and were not counted yet. */
  #ended: string[] = [];
  #files = 0;
  #bytes = 0;
  #last: Reached | null = null;
  #nextMs = 0;

  constructor(files: readonly HistoryFile[], errors: ErrorShare | null) {
    this.#errors = errors;
    this.#sizes = new Map(files.map(({ drop, path, size }) => [`${drop} ${path}`, size]));
    this.#total = { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
  }

  get total(): Amount {
    return this.#total;
  }

  /** Loads the runs that earlier calls brought to rest. */
  async recall(ledger: Ledger): Promise<void> {
    for await (const { drop, path } of allRuns(ledger, ENDED)) this.#rests(drop, path);
  }

  take({ what, drop, path, runId }: FileEvent): void {
    if (!ENDS.has(what)) return;
    this.#rests(drop, path);
    if (runId !== null && this.#errors !== null) this.#ended.push(runId);
  }

  /** Runs came to rest that are not counted into the share of errors yet. */
  get isUndecided(): boolean {
    return this.#ended.length > 0;
  }

  #rests(drop: string, path: string): void {
    const key = `${drop} ${path}`;
    const size = this.#sizes.get(key);
    if (size === undefined) return;
    this.#sizes.delete(key);
    this.#files += 1;
    this.#bytes += size;
  }

  /** Counts ended runs, and returns why no more files should be taken, in words, or null. Must not run concurrently. */
  async tooMuch(ledger: Pick<Ledger, "run">): Promise<string | null> {
    if (this.#errors === null) return null;
    // A run that cannot be read is counted by the next call.
    for (let id = this.#ended[0]; id !== undefined; id = this.#ended[0]) {
      const run = await ledger.run(id);
      if (run !== null) this.#errors.add(run);
      this.#ended.shift();
    }
    return this.#errors.reason;
  }

  /** The sums read every run, so they are taken less often the more runs there are. */
  async look(gateway: Gateway, throttle: Throttle, now = false): Promise<Reached> {
    const startMs = systemClock.monotonicMs();
    const files = {
      files: this.#files,
      bytes: this.#bytes,
      waits: waitsOf(gateway, throttle),
      retries: throttle.retries,
    };
    if (this.#last !== null && !now && startMs < this.#nextMs) return { ...this.#last, ...files };
    const { ledger } = gateway;
    const { points, files: standings } = await ledger.tally(EVER);
    const runs = await ledger.runsIn(STARTED_STATES, { limit: FILES_SHOWN });
    this.#last = {
      ...files,
      mapped: points.mapped,
      accepted: points.accepted,
      rejected: points.rejected,
      held: standings.held ?? 0,
      runs: runs.map((run) => ({ ...run, waits: gateway.waitReason(run) ?? null })),
    };
    this.#nextMs = startMs + (systemClock.monotonicMs() - startMs) * READ_SHARE;
    return this.#last;
  }
}

function waitsOf(gateway: Gateway, throttle: Throttle): readonly string[] {
  const services = [...gateway.serviceWaits()].map(([name, reason]) => `the service ${name}: ${reason}`);
  return [...services, ...throttle.waits()];
}

// Observes the work in progress of a running gateway through its ledger: a migration gives way to it. It only reads,
// so that it does not matter whether one process owns the ledger or nodes share it.

type WatchedLedger = Pick<Ledger, "runsIn" | "batches" | "close">;

class LiveTraffic {
  readonly #open: () => Promise<WatchedLedger | null>;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  #ledger: WatchedLedger | null = null;
  #services: ReadonlySet<string> = new Set();
  #fault: string | null = null;
  #loop: Promise<void> = Promise.resolve();

  /** `open` resolves with null where there is no ledger yet. */
  constructor(open: () => Promise<WatchedLedger | null>, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /**
   * Resolves after the first check. `onFault` is called when the ledger cannot be read, and with null when it can be
   * again.
   */
  async start(onFault: (words: string | null) => void): Promise<void> {
    await this.#check(onFault);
    this.#loop = this.#checkUntilStopped(onFault);
  }

  isLive(service: string): boolean {
    return this.#services.has(service);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#ledger?.close();
    this.#ledger = null;
  }

  async #checkUntilStopped(onFault: (words: string | null) => void): Promise<void> {
    while (await this.#clock.sleep(TRAFFIC_CHECK_EVERY_MS, this.#stopping.signal)) await this.#check(onFault);
  }

  async #check(onFault: (words: string | null) => void): Promise<void> {
    let fault: string | null = null;
    try {
      this.#ledger ??= await this.#open();
      this.#services = this.#ledger === null ? new Set() : await this.#busy(this.#ledger);
    } catch (thrown) {
      // A ledger that cannot be read must not stop a migration.
      fault = thrown instanceof Error ? thrown.message : String(thrown);
      this.#services = new Set();
    }
    if (fault !== this.#fault) onFault(fault);
    this.#fault = fault;
  }

  async #busy(ledger: WatchedLedger): Promise<ReadonlySet<string>> {
    const sinceMs = this.#clock.now().epochMilliseconds - STALE_MS;
    const busy = new Set<string>();
    for (const run of await ledger.runsIn(STARTED_STATES, { limit: RUNS_SCANNED }))
      if (!busy.has(run.binding.service) && (await moves(run, ledger, sinceMs))) busy.add(run.binding.service);
    return busy;
  }
}

async function moves(run: Run, ledger: WatchedLedger, sinceMs: number): Promise<boolean> {
  if (Date.parse(run.changedAt) >= sinceMs) return true;
  if (run.state !== "delivering") return false;
  // Of a large file only the batches change.
  return (await ledger.batches(run.id)).some(
    ({ acceptedAt }) => acceptedAt !== null && Date.parse(acceptedAt) >= sinceMs,
  );
}
