/**
 * Leads every run through its steps. The next step is always read from the ledger, so that a restart resumes
 * where the run stood.
 *
 * Its stages (`stages.ts`) work side by side, each with its own concurrency; runs take their steps in lists
 * (`groups.ts`). A step that must wait has a time and a reason; a service that cannot be reached makes all
 * its runs wait. Drops and lanes take turns, so that runs that wait at one of them never hide those that are
 * ready at another.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import { AT_REST_STATES, CLOSING_STATES, NEEDS_SERVICE_STATES, OPEN_STATES, RUN_STATES } from "../states.ts";
import { ActiveRuns } from "./active-runs.ts";
import { GROUP_WAIT_MS, Groups } from "./groups.ts";
import { beginToFill, freeSlots, openStages, readAgain, type SchedulerOptions, type Stage } from "./stages.ts";
import { type ListedResult, StepRunner } from "./step-runner.ts";
import type { RunSteps, StepResult } from "./steps/steps.ts";
import { FAULT_WAIT_MS, Waits } from "./waits.ts";

/**
 * Runs of a drop or a lane that are considered beyond the running ones, so that waiting runs hide no ready
 * ones.
 */
const READ_AHEAD = 200;
/** Waiting runs that are left out of a read; more cost as much as they save. */
const WAITING_MAX = 500;
/** Runs that are read at a time. */
const PAGE = { least: 8, most: 64 };

/** A drop that failed this often in a row is not waited for. */
const FAILURES_GIVEN_UP = 3;

/**
 * From so many running steps on, scans start at least `CROWD_SCAN_MS` milliseconds apart: a scan reads much
 * for the few free slots. With fewer, a scan starts at once.
 */
export const CROWD = 12;
const CROWD_SCAN_MS = 80;

export class Scheduler {
  readonly #steps: RunSteps;
  readonly #stages: readonly Stage[];
  readonly #waits: Waits;
  readonly #runner: StepRunner;
  readonly #groups: Groups;
  readonly #active = new ActiveRuns();
  readonly #abort = new AbortController();
  readonly #wakeTimer: WakeTimer;
  #scanning: Promise<void> | null = null;
  #isScanDue = false;
  #isDraining = false;

  constructor(steps: RunSteps, options: SchedulerOptions) {
    this.#steps = steps;
    this.#waits = new Waits(steps.clock, options.onService);
    this.#runner = new StepRunner(steps);
    this.#groups = new Groups(steps);
    this.#wakeTimer = new WakeTimer(steps.clock, () => this.wake());
    this.#stages = openStages(options);
  }

  /** Scans for due steps. Called when a run was opened, an outcome came in, or something else changed. */
  wake(runId?: string): void {
    if (runId !== undefined) {
      this.#waits.clear(runId);
      this.#active.notify(runId);
    }
    for (const stage of this.#stages) stage.emptyUntilMs = 0;
    this.#scan();
  }

  /** The triggers changed: what waits is tried now, such as held runs, which were mapped for the former ones. */
  triggersChanged(): void {
    for (const { waiting } of this.#stages) for (const id of waiting) this.#waits.clear(id);
    this.wake();
  }

  #scan(): void {
    if (this.#abort.signal.aborted || this.#isDraining) return;
    this.#isScanDue = true;
    if (this.#scanning !== null) return;
    this.#scanning = this.#fillStages()
      .catch((thrown) => {
        this.#steps.log.error({ err: thrown }, `the ledger cannot be read: ${wordsOf(thrown)}`);
        this.#wakeIn(FAULT_WAIT_MS.first);
      })
      .finally(() => {
        this.#scanning = null;
        // A call may have come after the last scan.
        if (this.#isScanDue) this.#scan();
      });
  }

  /** Resolves after one more scan: a sign of life. */
  async pulse(): Promise<void> {
    this.wake();
    await this.#scanning;
  }

  /** A step is in progress, other than the check of a held run, which is at rest meanwhile. */
  get isBusy(): boolean {
    return this.#stages.some((stage) => stage.name !== "held" && stage.running.size > 0);
  }

  /** The runs that are not at rest, or have something left to do. */
  pending(): Promise<readonly Run[]> {
    const isAsked = ({ id, binding }: Run) =>
      this.#waits.reason(id) !== undefined || this.#steps.reach.isAway(binding.service);
    return pendingRuns(this.#steps.ledger, READ_AHEAD, isAsked);
  }

  /** See `Faults.isStuck`. */
  isStuck(runId: string): boolean {
    return this.#runner.isStuck(runId);
  }

  /** Why no step of the run is in progress, as far as that is known. */
  waitReason({ id, state, binding }: Run): string | undefined {
    const own = this.#waits.reason(id);
    return own ?? (NEEDS_SERVICE_STATES.includes(state) ? this.serviceWaits().get(binding.service) : own);
  }

  /** Services that cannot be used now, with the reason. */
  serviceWaits(): ReadonlyMap<string, string> {
    return new Map([...this.#steps.reach.absences(), ...this.#waits.failing()]);
  }

  /** Called when services can be queried again for stored readings: the next run tries. */
  readonly askAgain = (): void => this.#steps.reach.retryNow();

  /** Ends the step of the run, and begins none for it until the work is done. */
  async withRunPaused<T>(runId: string, work: () => Promise<T>): Promise<T> {
    try {
      await this.#active.exclude(runId);
      return await work();
    } finally {
      this.#active.readmit(runId);
      this.#waits.release(runId);
      this.wake(runId);
    }
  }

  /** Ends the steps that use these drops, which can be done again, and begins none until the work is done. */
  async withDropsPaused<T>(drops: readonly string[], work: () => Promise<T>): Promise<T> {
    this.#active.closeDrops(drops);
    try {
      const closed = this.#stages.flatMap((stage) =>
        [...stage.running.values()].filter((run) => this.#isClosed(run, stage)),
      );
      await this.#active.stop(closed.map(({ id }) => id));
      return await work();
    } finally {
      this.#active.reopenDrops(drops);
      this.wake();
    }
  }

  /** The settings of these services changed: their runs no longer wait for known faults. */
  servicesChanged(services: readonly string[], deliveryConcurrency: number): void {
    for (const service of services) this.#waits.forgetService(service);
    this.#steps.reach.retryNow();
    for (const stage of this.#stages) {
      if (stage.name === "delivery") stage.slots = deliveryConcurrency;
      // A step in progress may still report on the former service.
      for (const run of stage.running.values()) if (services.includes(run.binding.service)) this.#active.notify(run.id);
    }
    this.wake();
  }

  /** All runs in progress belong to another node by now: ends all steps, and scans when they have ended. */
  async releaseAll(): Promise<void> {
    this.#active.stopAll();
    await this.#active.ended();
    this.wake();
  }

  /** Begins no further step, and resolves when those in progress have ended. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.#scanning;
    while (this.#active.size > 0) await this.#active.ended();
  }

  /** Stops steps that can be repeated, lets records end, and resolves when no step is in progress. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#active.stopAll();
    this.#wakeTimer.cancel();
    await this.#scanning;
    await this.#active.ended();
  }

  async #fillStages(): Promise<void> {
    while (this.#isScanDue && !this.#abort.signal.aborted) {
      await this.#wakeTimer.turn(this.#active.size);
      this.#isScanDue = false;
      const isDue = (id: string) => this.#waits.isOver(id, this.#wakeIn) && !this.#active.has(id);
      await this.#runner.interrupted.resume(isDue, (id, thrown) => this.#afterLedgerFault(id, thrown));
      for (const stage of this.#stages) await this.#fill(stage);
    }
  }

  /** Begins steps until no slot is free or no run is ready. */
  async #fill(stage: Stage): Promise<void> {
    const waitMs = beginToFill(stage, this.#steps.clock.monotonicMs());
    if (waitMs !== 0) {
      if (waitMs !== null) this.#wakeIn(waitMs);
      return;
    }
    this.#active.forgetChanges();
    const isReady = (run: Run) => this.#isReady(run, stage);
    // A wait that ends from now on has this stage read again.
    for (const id of stage.waiting) if (this.#waits.isOver(id, this.#wakeIn)) stage.waiting.delete(id);
    const queues = await readyQueues(this.#steps.ledger, stage, isReady);
    if (this.#abort.signal.aborted || this.#isDraining) return;
    // A drop may have been closed, or a command executed, while the others were read.
    const isReadyStill = (run: Run) => !this.#active.isChanged(run.id) && isReady(run);
    this.#beginAll(takeTurns(queues, stage, isReadyStill), stage);
  }

  #beginAll(runs: readonly Run[], stage: Stage): void {
    const { lists, waiting } = this.#groups.form(runs, this.#active.size >= CROWD);
    for (const run of waiting) stage.running.delete(run.id);
    if (waiting.length > 0) {
      stage.emptyUntilMs = 0;
      this.#wakeIn(GROUP_WAIT_MS);
    }
    for (const list of lists) {
      const stop = new AbortController();
      const results = this.#runner.start(list, stage, stop.signal);
      for (const [at, run] of list.entries())
        this.#begin(run, stage, { stop, result: results.then((all) => all[at] ?? null) });
    }
  }

  #isReady(run: Run, stage: Stage): boolean {
    return !this.#active.has(run.id) && !this.#isClosed(run, stage) && !this.#mustWait(run, stage);
  }

  #begin(run: Run, stage: Stage, list: { readonly stop: AbortController; readonly result: ListedResult }): void {
    const stop = new AbortController();
    stop.signal.addEventListener("abort", () => list.stop.abort());
    const task = this.#take(run, stage, stop.signal, list.result)
      .catch((thrown) => this.#afterLedgerFault(run.id, thrown))
      .finally(() => {
        stage.running.delete(run.id);
        this.#active.end(run.id);
        this.#wakeTimer.stepEnded(this.#active.size);
        this.#scan();
      });
    this.#active.begin(run.id, { stop, ended: task });
  }

  isRunning(runId: string): boolean {
    return this.#active.has(runId);
  }

  /** A run that is delivered or mapped has its files in the spool. */
  #isClosed(run: Run, stage: Stage): boolean {
    return stage.name !== "delivery" && run.state !== "fetched" && this.#active.isClosed(run.drop);
  }

  #mustWait(run: Run, stage: Stage): boolean {
    const left = this.#waits.left(run.id, stage.name === "delivery" ? run.binding.service : null);
    if (left > 0) this.#wakeIn(left);
    return left > 0;
  }

  /** Takes the next steps of a run, as long as they are for this stage. */
  async #take(run: Run, stage: Stage, signal: AbortSignal, list: ListedResult): Promise<void> {
    let listed = await list;
    if (signal.aborted) return;
    for (let now: Run | null = run; now !== null; ) {
      const result: StepResult = await this.#runner.result(now, stage, signal, listed);
      listed = null;
      // A run that waits itself is in the way as before.
      if (result.move !== "wait" && this.#waits.release(run.id))
        readAgain(this.#stages, { state: "mapped", path: run.path });
      readAgain(this.#stages, now);
      if (signal.aborted) return;
      if (result.move === "wait") return await this.#wait(run, stage, result);
      if (result.move === "rest" && result.held === true) this.#hold(run, stage);
      else if (stage.name === "delivery") this.#waits.succeeded(run.binding.service);
      const after: Run | null = result.run ?? (await this.#steps.ledger.run(run.id));
      if (after !== null) readAgain(this.#stages, after);
      now = result.move === "next" && after !== null && this.#continues(after, stage) ? after : null;
    }
  }

  #afterLedgerFault(run: string, thrown: unknown): void {
    const reason = wordsOf(thrown);
    this.#steps.log.error({ run, err: thrown }, `the ledger cannot be used for the run: ${reason}`);
    this.#waits.run(run, FAULT_WAIT_MS.first, reason);
    this.#wakeIn(FAULT_WAIT_MS.first);
  }

  #continues(run: Run, stage: Stage): boolean {
    return stage.states.includes(run.state) && !this.#isDraining && !this.#isClosed(run, stage);
  }

  #hold(run: Run, stage: Stage): void {
    if (!this.#active.isNotified(run.id)) {
      this.#waits.run(run.id, this.#steps.recheck.firstMs, "it is held");
      stage.waiting.add(run.id);
    }
    this.#wakeIn(this.#steps.recheck.firstMs);
  }

  async #wait(run: Run, stage: Stage, result: Extract<StepResult, { move: "wait" }>): Promise<void> {
    if (this.#active.isNotified(run.id)) return;
    const isBlocked = async (by: string) => this.isRunning(by) || !(await isUnblocked(run, by, this.#steps.ledger));
    await this.#waits.note(run, result, isBlocked);
    stage.waiting.add(run.id);
    stage.emptyUntilMs = 0;
    this.#wakeIn(result.ms);
  }

  readonly #wakeIn = (ms: number): void => {
    if (!this.#abort.signal.aborted) this.#wakeTimer.within(ms);
  };
}

// Reads from the ledger the runs that are not at rest, or have something left to do.

/**
 * Returns the runs of all nodes, without unconfirmed runs of other nodes, which ask about them themselves.
 *
 * @param limit At most so many runs of each kind.
 * @param isAsked Whether the service was asked about an unconfirmed run since this start, or cannot be asked.
 */
export async function pendingRuns(
  ledger: Pick<Ledger, "runsIn">,
  limit: number,
  isAsked: (run: Run) => boolean,
): Promise<readonly Run[]> {
  // Also those of other nodes: a command that waits until nothing is left must not end before them.
  const some = { limit };
  const open = await ledger.runsIn(OPEN_STATES, some);
  const accepted = await ledger.runsIn(CLOSING_STATES, { ...some, unsettled: true });
  const unconfirmed = await ledger.runsIn(["unconfirmed"], { ...some, ours: true, unsettled: true });
  const unfinished = await ledger.runsIn(AT_REST_STATES, { ...some, unfinished: true });
  return [...open, ...accepted, ...unconfirmed.filter((run) => !isAsked(run)), ...unfinished];
}

// Decides when the scheduler scans for work: not too soon after the last scan, and at the latest at the
// earliest time it was asked for.

export class WakeTimer {
  readonly #clock: Clock;
  readonly #scan: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Ends the pause before a scan. */
  #endPause: () => void = () => undefined;
  #dueMs = 0;
  #scannedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, scan: () => void) {
    this.#clock = clock;
    this.#scan = scan;
  }

  /**
   * Resolves when the next scan may start. Steps that wait for the same commit end together, and one scan
   * serves them all.
   */
  async turn(running: number): Promise<void> {
    const pauseMs = this.#scannedMs + CROWD_SCAN_MS - performance.now();
    if (running >= CROWD && pauseMs > 0) await this.#pause(pauseMs);
    else await setImmediate();
    this.#scannedMs = performance.now();
  }

  /** Called when a step has ended: once few are running, the next scan waits for no others. */
  stepEnded(running: number): void {
    if (running < CROWD) this.#endPause();
  }

  within(ms: number): void {
    const due = this.#clock.monotonicMs() + ms;
    if (this.#timer !== undefined && this.#dueMs <= due) return;
    clearTimeout(this.#timer);
    this.#dueMs = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#scan();
    }, ms);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#endPause();
  }

  #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#endPause = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }
}

// Decides whether there is nothing left to do, for `--until-idle`.

/** The part of a drop's watcher that is used here. */
interface IdleWatcher {
  status(): {
    readonly paused: string | null;
    readonly completePolls: number;
    readonly consecutiveFailures: number;
    readonly settlingCount: number;
    readonly leftCount: number;
    readonly missingCount: number;
  };
  pollNow(): Promise<unknown>;
}

/**
 * True when no file settles, every run is at rest (or stuck, with `withoutStuck`), and every drop was polled
 * after that.
 */
export async function isIdle(
  watchers: readonly IdleWatcher[],
  scheduler: Pick<Scheduler, "pending" | "isBusy" | "isStuck">,
  withoutStuck = false,
): Promise<boolean> {
  const dropsAtRest = () =>
    watchers.every((watcher) => {
      const { paused, completePolls, consecutiveFailures, settlingCount, leftCount } = watcher.status();
      if (paused !== null) return true;
      if (consecutiveFailures > 0) return consecutiveFailures >= FAILURES_GIVEN_UP;
      return completePolls > 0 && settlingCount === 0 && leftCount === 0;
    });
  const runsAtRest = async () => {
    if (scheduler.isBusy) return false;
    const runs = await scheduler.pending();
    return runs.every(({ id }) => withoutStuck && scheduler.isStuck(id));
  };
  if (!dropsAtRest() || !(await runsAtRest())) return false;
  // Files may have come while the last ones were worked on.
  await Promise.allSettled(
    watchers.filter((watcher) => watcher.status().consecutiveFailures === 0).map((watcher) => watcher.pollNow()),
  );
  // A file that is missing for the first time is decided by one more poll.
  const decided = watchers.every((watcher) => watcher.status().missingCount === 0);
  return decided && dropsAtRest() && (await runsAtRest());
}

// The runs that a stage may take next, by drops or lanes.

/** The first ready runs of each drop or lane. These take turns: each call begins with the next one. */
async function readyQueues(
  ledger: Pick<Ledger, "groupsOf" | "runsIn">,
  stage: Stage,
  isReady: (run: Run) => boolean,
): Promise<readonly (readonly Run[])[]> {
  const groups = await ledger.groupsOf(stage.states, stage.by, { ...stage.only, ours: true });
  stage.turn = groups.length === 0 ? 0 : (stage.turn + 1) % groups.length;
  const queues: (readonly Run[])[] = [];
  for (const group of [...groups.slice(stage.turn), ...groups.slice(0, stage.turn)]) {
    const { runs, isCut } = await readyRuns(ledger, stage, group, isReady);
    if (isCut) stage.emptyUntilMs = 0;
    queues.push(runs);
  }
  return queues;
}

/** Returns the first ready runs, and whether others may be ready behind them. */
async function readyRuns(
  ledger: Pick<Ledger, "runsIn">,
  stage: Stage,
  group: string,
  isReady: (run: Run) => boolean,
): Promise<{ readonly runs: Run[]; readonly isCut: boolean }> {
  const ready: Run[] = [];
  const waiting = stage.waiting.values().take(WAITING_MAX);
  const filter = { ...stage.only, ours: true, [stage.by]: group, except: [...stage.running.keys(), ...waiting] };
  const free = Math.max(PAGE.least, stage.slots + stage.smallFileSlots - stage.running.size);
  let limit = Math.min(PAGE.most, free);
  let after: string | undefined;
  for (let seen = 0; seen < READ_AHEAD && ready.length < free; limit = Math.min(PAGE.most, 2 * limit)) {
    const page = after === undefined ? { ...filter, limit } : { ...filter, limit, after };
    const some = await ledger.runsIn(stage.states, page);
    ready.push(...some.filter(isReady));
    if (some.length < limit) return { runs: ready, isCut: false };
    after = some.at(-1)?.id;
    seen += some.length;
  }
  return { runs: ready.slice(0, free), isCut: true };
}

/** Takes runs of the queues in turns into the stage, as far as it has slots. */
function takeTurns(queues: readonly (readonly Run[])[], stage: Stage, isReady: (run: Run) => boolean): readonly Run[] {
  const mayTake = freeSlots(stage);
  const taken: Run[] = [];
  for (let rank = 0; rank < stage.slots + stage.smallFileSlots; rank += 1) {
    for (const queue of queues) {
      const run = queue[rank];
      if (run === undefined || !isReady(run)) continue;
      if (!mayTake(run)) {
        stage.emptyUntilMs = 0;
        continue;
      }
      stage.running.set(run.id, run);
      taken.push(run);
    }
  }
  return taken;
}

/** Whether the other run blocks this one no longer: it may have moved while this one took its step. */
async function isUnblocked(run: Run, blockedBy: string, ledger: Pick<Ledger, "run" | "blockedBy">): Promise<boolean> {
  const other = await ledger.run(blockedBy);
  // An opened container blocks other runs until its entries have runs, which block them then.
  if (other?.state === "opened") return (await ledger.blockedBy(run))?.id !== blockedBy;
  return other === null || !RUN_STATES[other.state].isOpen;
}
