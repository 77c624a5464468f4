/**
 * Leads every run through its steps. It holds no run in memory beyond those in hand: what to do next is always read
 * from the ledger, so a restart goes on where the last process stood.
 *
 * Desks work side by side, each with its own number of hands: `intake` (fetch, and map or open), `delivery`, `containers`
 * (tend those that are opened), `confirming` and `finishing`. A run is at one desk at a time; small ones may take their step together (`parties.ts`). A step that must wait names a time and a reason;
 * a service that cannot be reached makes all its runs wait, not only the one that found out. Drops and lanes take turns, so
 * that what waits at one of them never hides what is ready at another.
 */
import type { Run } from "../model.ts";
import { isLeaseLost, wordsOf } from "../support/errors.ts";
import { GATHER_MS, Parties } from "./parties.ts";
import { pendingRuns } from "./pending-runs.ts";
import { beginToFill, type ConductorOptions, type Desk, freeHands, openDesks } from "./stages.ts";
import { FOR_SERVICE, QUARANTINABLE, takeStep } from "./step-dispatch.ts";
import { Faults } from "./step-faults.ts";
import { NEXT, REST, type RunSteps, type StepResult, waitFor } from "./steps.ts";
import { FAULT_WAIT_MS, Waits } from "./waits.ts";
import { CROWD, NextLook } from "./wake-timer.ts";

/** How many runs of a drop or a lane are looked at beyond those in hand, so that waiting ones do not hide the ready ones behind them. */
const LOOK_AHEAD = 200;
/** Runs that are read at a time: about as many as there are free hands. */
const PAGE = { least: 8, most: 64 };

export class Conductor {
  readonly #steps: RunSteps;
  readonly #desks: readonly Desk[];
  readonly #waits: Waits;
  /** Runs in hand of which something new was told meanwhile: they are not made to wait. */
  readonly #told = new Set<string>();
  readonly #faults: Faults;
  readonly #parties: Parties;
  readonly #tasks = new Set<Promise<void>>();
  /** Of the runs in hand: how to end the step, and when it has ended. */
  readonly #steppers = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  /** Runs that no hand may take. */
  readonly #barred = new Set<string>();
  /** Runs that a person had the last word of since a desk began to look: what it has read of them may be no longer so. */
  readonly #changed = new Set<string>();
  /** Drops that no hand may touch. */
  readonly #closedDrops = new Set<string>();
  readonly #abort = new AbortController();
  readonly #nextLook: NextLook;
  #pumping: Promise<void> | null = null;
  #again = false;
  #resting = false;

  constructor(steps: RunSteps, options: ConductorOptions) {
    this.#steps = steps;
    this.#waits = new Waits(steps.clock, options.onService);
    this.#faults = new Faults(steps);
    this.#parties = new Parties(steps);
    this.#nextLook = new NextLook(steps.clock, () => this.wake());
    this.#desks = openDesks(options);
  }

  /** Looks for work. Called when something may have changed: a run was opened, an outcome came in, a time has passed. */
  wake(runId?: string): void {
    if (runId !== undefined) {
      this.#waits.clear(runId);
      if (this.isInHand(runId)) this.#told.add(runId);
    }
    for (const desk of this.#desks) desk.emptyUntilMs = 0;
    this.#look();
  }

  #look(): void {
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
        // Somebody may have called between the last look and now.
        if (this.#again) this.#look();
      });
  }

  /** Resolves when it has looked for work once more: a sign of life. */
  async pulse(): Promise<void> {
    this.wake();
    await this.#pumping;
  }

  /** Something is in hand, other than held runs that are looked at. */
  get isBusy(): boolean {
    return this.#desks.some((desk) => desk.name !== "held" && desk.inHand.size > 0);
  }

  /** Runs that are on their way, and for each that waits, why. Nothing is on its way when both are empty. */
  async pending(): Promise<{ readonly inHand: number; readonly runs: readonly Run[] }> {
    // A held run is at rest, also while it is looked at.
    const inHand = this.#desks.reduce(
      (sum, desk) => (desk.name === "held" ? sum : sum + desk.inHand.size),
      0,
    );
    const isAsked = ({ id, binding }: Run) =>
      this.#waits.reason(id) !== undefined || this.#steps.reach.isAway(binding.service);
    return { inHand, runs: await pendingRuns(this.#steps.ledger, LOOK_AHEAD, isAsked) };
  }

  /** See `Faults.isStuck`. */
  isStuck(runId: string): boolean {
    return this.#faults.isStuck(runId);
  }

  /** Why a run is not in hand, as far as that is known. */
  waitReason({ id, state, binding }: Run): string | undefined {
    const own = this.#waits.reason(id);
    if (own !== undefined || !FOR_SERVICE.includes(state)) return own;
    return this.serviceWaits().get(binding.service);
  }

  /** Services that cannot be used now, with the reason. */
  serviceWaits(): ReadonlyMap<string, string> {
    return new Map([...this.#steps.reach.absences(), ...this.#waits.failing()]);
  }

  /** Somebody says that services can be asked again what they stored: the next run tries. */
  readonly askAgain = (): void => this.#steps.reach.retryNow();

  /** Ends the step that the run is in, and lets nobody take the run until the work is done. */
  async withoutHands<T>(runId: string, work: () => Promise<T>): Promise<T> {
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
  async withoutHandsAt<T>(drops: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const drop of drops) this.#closedDrops.add(drop);
    try {
      const ended = this.#desks
        .flatMap((desk) => [...desk.inHand.values()].filter((run) => this.#isClosed(run, desk)))
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
  servicesChanged(services: readonly string[], deliveryHands: number): void {
    for (const service of services) this.#waits.forgetService(service);
    this.#steps.reach.retryNow();
    for (const desk of this.#desks) {
      if (desk.name === "delivery") desk.hands = deliveryHands;
      // What a step under way learns yet is about the service of before.
      for (const run of desk.inHand.values())
        if (services.includes(run.binding.service)) this.#told.add(run.id);
    }
    this.wake();
  }

  /** Everything in hand is another node's by now: ends all steps, and looks for work when they have ended. */
  async letGo(): Promise<void> {
    for (const { stop } of this.#steppers.values()) stop.abort();
    await Promise.allSettled([...this.#tasks]);
    this.wake();
  }

  /** Begins no step any more, and resolves when those under way have ended. */
  async rest(): Promise<void> {
    this.#resting = true;
    await this.#pumping;
    while (this.#tasks.size > 0) await Promise.allSettled([...this.#tasks]);
  }

  /** Cancels what can be done again, lets what is being recorded end, and resolves when all hands are empty. */
  async stop(): Promise<void> {
    this.#abort.abort();
    for (const { stop } of this.#steppers.values()) stop.abort();
    this.#nextLook.cancel();
    await this.#pumping;
    await Promise.allSettled(this.#tasks);
  }

  async #pump(): Promise<void> {
    while (this.#again && !this.#abort.signal.aborted) {
      await this.#nextLook.turn(this.#steppers.size);
      this.#again = false;
      for (const desk of this.#desks) await this.#fill(desk);
    }
  }

  /** Drops or lanes take turns, one run at a time, until no hand is free or nothing is ready. */
  async #fill(desk: Desk): Promise<void> {
    const hands = desk.hands + desk.smallHands;
    const waitMs = beginToFill(desk, this.#steps.clock.monotonicMs());
    if (waitMs !== 0) {
      if (waitMs !== null) this.#wakeIn(waitMs);
      return;
    }
    this.#changed.clear();
    const groups = await this.#steps.ledger.groupsOf(desk.states, desk.by, { ...desk.only, ours: true });
    desk.turn = groups.length === 0 ? 0 : (desk.turn + 1) % groups.length;
    const queues: Run[][] = [];
    for (const group of [...groups.slice(desk.turn), ...groups.slice(0, desk.turn)])
      queues.push(await this.#readyOf(desk, group, hands));
    if (this.#abort.signal.aborted || this.#resting) return;
    const mayTake = freeHands(desk);
    const taken: Run[] = [];
    for (let rank = 0; rank < hands; rank += 1) {
      for (const queue of queues) {
        const run = queue[rank];
        // Somebody may have closed its drop, or ordered something, while the others were read.
        if (run === undefined || this.#changed.has(run.id) || !this.#isReady(run, desk)) continue;
        if (!mayTake(run)) {
          desk.emptyUntilMs = 0;
          continue;
        }
        desk.inHand.set(run.id, run);
        taken.push(run);
      }
    }
    this.#beginAll(taken, desk);
  }

  /** Runs of small files in parties, the others one by one. */
  #beginAll(runs: readonly Run[], desk: Desk): void {
    const { parties, alone, gathering } = this.#parties.form(runs, this.#steppers.size >= CROWD);
    for (const run of gathering) desk.inHand.delete(run.id);
    if (gathering.length > 0) {
      desk.emptyUntilMs = 0;
      this.#wakeIn(GATHER_MS);
    }
    for (const run of alone) this.#begin(run, desk);
    for (const party of parties) {
      const stop = new AbortController();
      const results = party.take(stop.signal);
      // Who is not wanted any more ends the party; the others go on alone.
      for (const run of party.runs)
        this.#begin(run, desk, { stop, result: results.then((all) => all.get(run.id) ?? null) });
    }
  }

  /** The first runs of a drop or a lane that are neither in hand nor made to wait. */
  async #readyOf(desk: Desk, group: string, wanted: number): Promise<Run[]> {
    const ready: Run[] = [];
    const filter = { ...desk.only, ours: true, [desk.by]: group, except: [...desk.inHand.keys()] };
    const free = Math.max(PAGE.least, wanted - desk.inHand.size);
    let limit = Math.min(PAGE.most, free);
    let after: string | undefined;
    for (let seen = 0; seen < LOOK_AHEAD && ready.length < free; limit = Math.min(PAGE.most, 2 * limit)) {
      const page = after === undefined ? { ...filter, limit } : { ...filter, limit, after };
      const some = await this.#steps.ledger.runsIn(desk.states, page);
      ready.push(...some.filter((run) => this.#isReady(run, desk)));
      if (some.length < limit) return ready;
      after = some.at(-1)?.id;
      seen += some.length;
    }
    desk.emptyUntilMs = 0;
    return ready.slice(0, free);
  }

  #isReady(run: Run, desk: Desk): boolean {
    return !this.isInHand(run.id) && !this.#isClosed(run, desk) && !this.#waitsStill(run, desk);
  }

  /** The desks that take runs in this state have something to look at; a container is also moved by its entries. */
  #lookAgain({ state, path }: Pick<Run, "state" | "path">): void {
    for (const desk of this.#desks)
      if (desk.states.includes(state) || (desk.name === "containers" && path.includes("!/")))
        desk.emptyUntilMs = 0;
  }

  #begin(
    run: Run,
    desk: Desk,
    party?: { readonly stop: AbortController; readonly result: Promise<StepResult | null> },
  ): void {
    const stop = new AbortController();
    if (party !== undefined) stop.signal.addEventListener("abort", () => party.stop.abort());
    const task = this.#take(run, desk, stop.signal, party?.result).finally(() => {
      desk.inHand.delete(run.id);
      this.#told.delete(run.id);
      this.#steppers.delete(run.id);
      this.#tasks.delete(task);
      this.#look();
    });
    this.#steppers.set(run.id, { stop, ended: task });
    this.#tasks.add(task);
  }

  isInHand(runId: string): boolean {
    return this.#barred.has(runId) || this.#steppers.has(runId);
  }

  /** What is delivered or mapped has come into the spool. */
  #isClosed(run: Run, desk: Desk): boolean {
    return desk.name !== "delivery" && run.state !== "fetched" && this.#closedDrops.has(run.drop);
  }

  #waitsStill(run: Run, desk: Desk): boolean {
    const left = this.#waits.left(run.id, desk.name === "delivery" ? run.binding.service : null);
    if (left > 0) this.#wakeIn(left);
    return left > 0;
  }

  /** One step after another, as long as they are for this desk. */
  async #take(run: Run, desk: Desk, signal: AbortSignal, party?: Promise<StepResult | null>): Promise<void> {
    let together = (await party) ?? null;
    if (signal.aborted) return;
    for (let now: Run | null = run; now !== null; ) {
      if (together !== null) this.#faults.forget(run.id);
      const result: StepResult = together ?? (await this.#stepOrFault(now, desk, signal));
      together = null;
      if (this.#waits.release(run.id)) this.#lookAgain({ state: "mapped", path: run.path });
      this.#lookAgain(now);
      if (signal.aborted) return;
      if (result.move === "wait") return await this.#wait(run, desk, result);
      if (result.move === "rest" && result.held === true) this.#hold(run);
      else if (desk.name === "delivery") this.#waits.succeeded(run.binding.service);
      const after: Run | null = result.run ?? (await this.#steps.ledger.run(run.id));
      if (after !== null) this.#lookAgain(after);
      now = result.move === "next" && after !== null && this.#goesOn(after, desk) ? after : null;
    }
  }

  #goesOn(run: Run, desk: Desk): boolean {
    return desk.states.includes(run.state) && !this.#resting && !this.#isClosed(run, desk);
  }

  #hold(run: Run): void {
    if (!this.#told.has(run.id)) this.#waits.run(run.id, this.#steps.recheck.firstMs, "it is held");
    this.#wakeIn(this.#steps.recheck.firstMs);
  }

  async #wait(run: Run, desk: Desk, result: Extract<StepResult, { move: "wait" }>): Promise<void> {
    if (this.#told.has(run.id)) return;
    const { service } = run.binding;
    if (result.failing === true) this.#waits.failed(service, result.reason);
    if (result.wholeService === true) this.#waits.service(service, result.ms, result.reason);
    else if (!(await this.#isDone(run, result.blockedBy))) {
      this.#waits.run(run.id, result.ms, result.reason);
      if (result.blockedBy !== undefined) this.#waits.behind(run.id, result.blockedBy);
    }
    desk.emptyUntilMs = 0;
    this.#wakeIn(result.ms);
  }

  /** The other run may have got out of the way while this one was being looked at. */
  async #isDone(run: Run, blockedBy: string | undefined): Promise<boolean> {
    if (blockedBy === undefined || this.isInHand(blockedBy)) return false;
    const other = await this.#steps.ledger.run(blockedBy);
    // An opened container is in the way until its entries have runs, and then they are.
    if (other?.state === "opened") return (await this.#steps.ledger.blockedBy(run))?.id !== blockedBy;
    return other === null || !QUARANTINABLE.includes(other.state);
  }

  /** Never rejects: whatever happens to one run, the others go on. */
  async #stepOrFault(run: Run, desk: Desk, signal: AbortSignal): Promise<StepResult> {
    try {
      const held = await this.#steps.ledger.fleet.holdRun(run);
      // Another node was faster, or it has gone on since it was looked at.
      if (held?.state !== run.state) return held === null ? REST : NEXT;
      const result = await takeStep(held, desk, this.#steps, signal);
      this.#faults.forget(run.id);
      return result;
    } catch (thrown) {
      if (signal.aborted) return REST;
      if (isLeaseLost(thrown)) {
        this.#steps.log.info({ run: run.id, file: run.path }, `what was done is dropped: ${wordsOf(thrown)}`);
        return REST;
      }
      try {
        return await this.#faults.after(run, thrown);
      } catch (second) {
        this.#steps.log.error(
          { run: run.id, err: second },
          `a fault could not be recorded: ${wordsOf(second)}`,
        );
        return waitFor(FAULT_WAIT_MS.last, wordsOf(second));
      }
    }
  }

  #wakeIn(ms: number): void {
    if (!this.#abort.signal.aborted) this.#nextLook.within(ms);
  }
}
