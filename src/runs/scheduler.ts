/**
 * Leads every run through its steps. The next step is always read from the ledger, so that a restart resumes where the
 * run stood.
 *
 * Its stages (`stages.ts`) work side by side, each with its own concurrency; runs take their steps in lists
 * (`groups.ts`). A step that must wait has a time and a reason; a service that cannot be reached makes all its runs
 * wait. Drops and lanes take turns, so that runs that wait at one of them never hide those that are ready at another.
 */

import type { Run } from "../model.ts";
import { NEEDS_SERVICE_STATES, RUN_STATES } from "../states.ts";
import { wordsOf } from "../support/errors.ts";
import type { Settled } from "../support/settled.ts";
import { GROUP_WAIT_MS, Groups } from "./groups.ts";
import { pendingRuns } from "./pending-runs.ts";
import { LOOK_AHEAD, readyRuns, takeTurns } from "./ready-runs.ts";
import { beginToFill, openStages, type SchedulerOptions, type Stage } from "./stages.ts";
import { StepRunner } from "./step-runner.ts";
import type { RunSteps, StepResult } from "./steps/steps.ts";
import { FAULT_WAIT_MS, Waits } from "./waits.ts";
import { CROWD, WakeTimer } from "./wake-timer.ts";

export class Scheduler {
  readonly #steps: RunSteps;
  readonly #stages: readonly Stage[];
  readonly #waits: Waits;
  /** Runs in progress that something new was reported of meanwhile: they are not made to wait. */
  readonly #notified = new Set<string>();
  readonly #runner: StepRunner;
  readonly #groups: Groups;
  readonly #tasks = new Set<Promise<void>>();
  /** For the runs in progress: how to end the step, and when it has ended. */
  readonly #steppers = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  /** Runs that must not take a step. */
  readonly #barred = new Set<string>();
  /** Runs that a person changed since a stage began to read. */
  readonly #changed = new Set<string>();
  /** Drops that no step may use. */
  readonly #closedDrops = new Set<string>();
  readonly #abort = new AbortController();
  readonly #wakeTimer: WakeTimer;
  #pumping: Promise<void> | null = null;
  #again = false;
  #resting = false;

  constructor(steps: RunSteps, options: SchedulerOptions) {
    this.#steps = steps;
    this.#waits = new Waits(steps.clock, options.onService);
    this.#runner = new StepRunner(steps);
    this.#groups = new Groups(steps);
    this.#wakeTimer = new WakeTimer(steps.clock, () => this.wake());
    this.#stages = openStages(options);
  }

  /**
   * Begins the steps that are due. Called when something may have changed: a run was opened, an outcome came in, a time
   * has passed.
   */
  wake(runId?: string): void {
    if (runId !== undefined) {
      this.#waits.clear(runId);
      if (this.isRunning(runId)) this.#notified.add(runId);
    }
    for (const stage of this.#stages) stage.emptyUntilMs = 0;
    this.#poll();
  }

  #poll(): void {
    if (this.#abort.signal.aborted || this.#resting) return;
    this.#again = true;
    if (this.#pumping !== null) return;
    this.#pumping = this.#pump()
      .catch((thrown) => {
        this.#steps.log.error({ err: thrown }, `the ledger cannot be read: ${wordsOf(thrown)}`);
        this.#wakeIn(FAULT_WAIT_MS.first);
      })
      .finally(() => {
        this.#pumping = null;
        // There may have been a call since the last poll.
        if (this.#again) this.#poll();
      });
  }

  /** Resolves when the scheduler has polled once more: a sign of life. */
  async pulse(): Promise<void> {
    this.wake();
    await this.#pumping;
  }

  /** A step is in progress, other than the check of a held run. */
  get isBusy(): boolean {
    return this.#stages.some((stage) => stage.name !== "held" && stage.running.size > 0);
  }

  /** Runs that are on their way, and for each that waits, why. Nothing is on its way when both are empty. */
  async pending(): Promise<{ readonly running: number; readonly runs: readonly Run[] }> {
    // A held run is at rest, also while it is checked.
    const working = this.#stages.filter(({ name }) => name !== "held");
    const running = working.reduce((sum, stage) => sum + stage.running.size, 0);
    const isAsked = ({ id, binding }: Run) =>
      this.#waits.reason(id) !== undefined || this.#steps.reach.isAway(binding.service);
    return { running, runs: await pendingRuns(this.#steps.ledger, LOOK_AHEAD, isAsked) };
  }

  /** See `Faults.isStuck`. */
  isStuck(runId: string): boolean {
    return this.#runner.isStuck(runId);
  }

  /** Why a run is not in progress, as far as that is known. */
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
    this.#barred.add(runId);
    try {
      const stepper = this.#steppers.get(runId);
      stepper?.stop.abort();
      await stepper?.ended;
      return await work();
    } finally {
      this.#barred.delete(runId);
      this.#changed.add(runId);
      this.#waits.release(runId);
      this.wake(runId);
    }
  }

  /** Ends the steps that use these drops, which can be done again, and begins none until the work is done. */
  async withDropsPaused<T>(drops: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const drop of drops) this.#closedDrops.add(drop);
    try {
      const ended = this.#stages
        .flatMap((stage) => [...stage.running.values()].filter((run) => this.#isClosed(run, stage)))
        .map(({ id }) => this.#steppers.get(id));
      for (const stepper of ended) stepper?.stop.abort();
      await Promise.all(ended.map((stepper) => stepper?.ended));
      return await work();
    } finally {
      for (const drop of drops) this.#closedDrops.delete(drop);
      this.wake();
    }
  }

  /** These services are others now: what was known against them counts no longer. */
  servicesChanged(services: readonly string[], deliveryConcurrency: number): void {
    for (const service of services) this.#waits.forgetService(service);
    this.#steps.reach.retryNow();
    for (const stage of this.#stages) {
      if (stage.name === "delivery") stage.slots = deliveryConcurrency;
      // A step in progress may still report on the former service.
      for (const run of stage.running.values())
        if (services.includes(run.binding.service)) this.#notified.add(run.id);
    }
    this.wake();
  }

  /** All runs in progress belong to another node by now: ends all steps, and polls when they have ended. */
  async releaseAll(): Promise<void> {
    for (const { stop } of this.#steppers.values()) stop.abort();
    await Promise.allSettled([...this.#tasks]);
    this.wake();
  }

  /** Begins no further step, and resolves when those in progress have ended. */
  async rest(): Promise<void> {
    this.#resting = true;
    await this.#pumping;
    while (this.#tasks.size > 0) await Promise.allSettled([...this.#tasks]);
  }

  /** Stops steps that can be repeated, lets records end, and resolves when no step is in progress. */
  async stop(): Promise<void> {
    this.#abort.abort();
    for (const { stop } of this.#steppers.values()) stop.abort();
    this.#wakeTimer.cancel();
    await this.#pumping;
    await Promise.allSettled(this.#tasks);
  }

  async #pump(): Promise<void> {
    while (this.#again && !this.#abort.signal.aborted) {
      await this.#wakeTimer.turn(this.#steppers.size);
      this.#again = false;
      for (const stage of this.#stages) await this.#fill(stage);
    }
  }

  /** Drops or lanes take turns, one run at a time, until no slot is free or nothing is ready. */
  async #fill(stage: Stage): Promise<void> {
    const slots = stage.slots + stage.smallFileSlots;
    const waitMs = beginToFill(stage, this.#steps.clock.monotonicMs());
    if (waitMs !== 0) {
      if (waitMs !== null) this.#wakeIn(waitMs);
      return;
    }
    this.#changed.clear();
    const groups = await this.#steps.ledger.groupsOf(stage.states, stage.by, { ...stage.only, ours: true });
    stage.turn = groups.length === 0 ? 0 : (stage.turn + 1) % groups.length;
    const queues: Run[][] = [];
    for (const group of [...groups.slice(stage.turn), ...groups.slice(0, stage.turn)])
      queues.push(await this.#readyOf(stage, group, slots));
    if (this.#abort.signal.aborted || this.#resting) return;
    // A drop may have been closed, or a command received, while the others were read.
    const isReady = (run: Run) => !this.#changed.has(run.id) && this.#isReady(run, stage);
    this.#beginAll(takeTurns(queues, slots, stage, isReady), stage);
  }

  #beginAll(runs: readonly Run[], stage: Stage): void {
    const { lists, waiting } = this.#groups.form(runs, this.#steppers.size >= CROWD);
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

  /** The first runs of a drop or a lane that are neither in progress nor made to wait. */
  async #readyOf(stage: Stage, group: string, wanted: number): Promise<Run[]> {
    const isReady = (run: Run) => this.#isReady(run, stage);
    const { runs, isCut } = await readyRuns(this.#steps.ledger, stage, group, wanted, isReady);
    if (isCut) stage.emptyUntilMs = 0;
    return runs;
  }

  #isReady(run: Run, stage: Stage): boolean {
    return !this.isRunning(run.id) && !this.#isClosed(run, stage) && !this.#waitsStill(run, stage);
  }

  /** Has the stages polled that take runs in this state; a container is also moved by its entries. */
  #pollAgain({ state, path }: Pick<Run, "state" | "path">): void {
    for (const stage of this.#stages)
      if (stage.states.includes(state) || (stage.name === "containers" && path.includes("!/")))
        stage.emptyUntilMs = 0;
  }

  #begin(
    run: Run,
    stage: Stage,
    list: { readonly stop: AbortController; readonly result: Promise<Settled<StepResult> | null> },
  ): void {
    const stop = new AbortController();
    stop.signal.addEventListener("abort", () => list.stop.abort());
    const task = this.#take(run, stage, stop.signal, list.result).finally(() => {
      stage.running.delete(run.id);
      this.#notified.delete(run.id);
      this.#steppers.delete(run.id);
      this.#tasks.delete(task);
      this.#poll();
    });
    this.#steppers.set(run.id, { stop, ended: task });
    this.#tasks.add(task);
  }

  isRunning(runId: string): boolean {
    return this.#barred.has(runId) || this.#steppers.has(runId);
  }

  /** A run that is delivered or mapped has its files in the spool. */
  #isClosed(run: Run, stage: Stage): boolean {
    return stage.name !== "delivery" && run.state !== "fetched" && this.#closedDrops.has(run.drop);
  }

  #waitsStill(run: Run, stage: Stage): boolean {
    const left = this.#waits.left(run.id, stage.name === "delivery" ? run.binding.service : null);
    if (left > 0) this.#wakeIn(left);
    return left > 0;
  }

  /** One step after another, as long as they are for this stage. */
  async #take(
    run: Run,
    stage: Stage,
    signal: AbortSignal,
    list: Promise<Settled<StepResult> | null>,
  ): Promise<void> {
    let listed = await list;
    if (signal.aborted) return;
    for (let now: Run | null = run; now !== null; ) {
      const result: StepResult = await this.#runner.result(now, stage, signal, listed);
      listed = null;
      if (this.#waits.release(run.id)) this.#pollAgain({ state: "mapped", path: run.path });
      this.#pollAgain(now);
      if (signal.aborted) return;
      if (result.move === "wait") return await this.#wait(run, stage, result);
      if (result.move === "rest" && result.held === true) this.#hold(run);
      else if (stage.name === "delivery") this.#waits.succeeded(run.binding.service);
      const after: Run | null = result.run ?? (await this.#steps.ledger.run(run.id));
      if (after !== null) this.#pollAgain(after);
      now = result.move === "next" && after !== null && this.#continues(after, stage) ? after : null;
    }
  }

  #continues(run: Run, stage: Stage): boolean {
    return stage.states.includes(run.state) && !this.#resting && !this.#isClosed(run, stage);
  }

  #hold(run: Run): void {
    if (!this.#notified.has(run.id)) this.#waits.run(run.id, this.#steps.recheck.firstMs, "it is held");
    this.#wakeIn(this.#steps.recheck.firstMs);
  }

  async #wait(run: Run, stage: Stage, result: Extract<StepResult, { move: "wait" }>): Promise<void> {
    if (this.#notified.has(run.id)) return;
    const { service } = run.binding;
    if (result.failing === true) this.#waits.failed(service, result.reason);
    if (result.wholeService === true) this.#waits.service(service, result.ms, result.reason);
    else if (!(await this.#isDone(run, result.blockedBy))) {
      this.#waits.run(run.id, result.ms, result.reason);
      if (result.blockedBy !== undefined) this.#waits.behind(run.id, result.blockedBy);
    }
    stage.emptyUntilMs = 0;
    this.#wakeIn(result.ms);
  }

  /** The other run may have got out of the way while this one was read. */
  async #isDone(run: Run, blockedBy: string | undefined): Promise<boolean> {
    if (blockedBy === undefined || this.isRunning(blockedBy)) return false;
    const other = await this.#steps.ledger.run(blockedBy);
    // An opened container is in the way until its entries have runs, and then they are.
    if (other?.state === "opened") return (await this.#steps.ledger.blockedBy(run))?.id !== blockedBy;
    return other === null || !RUN_STATES[other.state].isOpen;
  }

  #wakeIn(ms: number): void {
    if (!this.#abort.signal.aborted) this.#wakeTimer.within(ms);
  }
}
