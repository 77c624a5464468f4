/**
 * Leads every run through its steps. It holds no run in memory beyond those in hand: what to do next is always read
 * from the ledger, so a restart goes on where the last process stood.
 *
 * Three desks work side by side, each with its own number of hands: `intake` (fetch and map), `delivery`, and `closing`
 * (confirm and finish). A run is at one desk at a time. A step that must wait names a time and a reason;
 * a service that cannot be reached makes all its runs wait, not only the one that found out.
 */
import type { Run, RunState } from "../model.ts";
import { ConfigError, HeadgateError, InvariantError, RejectedError, wordsOf } from "../support/errors.ts";
import { confirmOutcome } from "./confirming.ts";
import { deliverBatches } from "./delivering.ts";
import { fetchInput } from "./fetching.ts";
import { finishSource } from "./finishing.ts";
import { mapInput } from "./mapping.ts";
import { REST, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps.ts";

export interface ConductorOptions {
  /** Runs fetched and mapped side by side. */
  readonly intakeHands: number;
  /** Runs delivered side by side. */
  readonly deliveryHands: number;
}

interface Desk {
  readonly name: string;
  readonly hands: number;
  readonly states: readonly RunState[];
  /** Of these, only runs whose source was not finished, or for which something is still awaited. */
  readonly only: { readonly unfinished?: boolean; readonly unsettled?: boolean };
  readonly inHand: Set<string>;
}

interface Waiting {
  readonly untilMs: number;
  readonly reason: string;
}

const CLOSING_HANDS = 4;
/** How many runs beyond those in hand are looked at, so that a few waiting ones do not hide the ready ones. */
const LOOK_AHEAD = 200;
const FAULT_WAIT_MS = { first: 1_000, last: 60_000 } as const;

const AT_REST: readonly RunState[] = ["confirmed", "empty", "discarded", "quarantined", "cancelled"];

export class Conductor {
  readonly #steps: RunSteps;
  readonly #desks: readonly Desk[];
  readonly #waiting = new Map<string, Waiting>();
  /** Which runs wait for which. */
  readonly #blocked = new Map<string, readonly string[]>();
  readonly #services = new Map<string, Waiting>();
  readonly #faults = new Map<string, number>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #pumping: Promise<void> | null = null;
  #again = false;

  constructor(steps: RunSteps, options: ConductorOptions) {
    this.#steps = steps;
    const desk = (
      name: string,
      hands: number,
      states: readonly RunState[],
      only: Desk["only"] = {},
    ): Desk => ({
      name,
      hands,
      states,
      only,
      inHand: new Set(),
    });
    this.#desks = [
      desk("intake", options.intakeHands, ["claimed", "fetched"]),
      desk("delivery", options.deliveryHands, ["mapped", "delivering"]),
      desk("confirming", CLOSING_HANDS, ["accepted"], { unsettled: true }),
      desk("finishing", CLOSING_HANDS, AT_REST, { unfinished: true }),
    ];
  }

  /** Looks for work. Called when something may have changed: a run was opened, an outcome came in, a time has passed. */
  wake(runId?: string): void {
    if (runId !== undefined) this.#waiting.delete(runId);
    if (this.#abort.signal.aborted) return;
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
        if (this.#again) this.wake();
      });
  }

  /** Runs that are on their way, and for each that waits, why. Nothing is on its way when both are empty. */
  async pending(): Promise<{ readonly inHand: number; readonly runs: readonly Run[] }> {
    const inHand = this.#desks.reduce((sum, desk) => sum + desk.inHand.size, 0);
    const underWay = await this.#steps.ledger.runsIn(
      ["claimed", "fetched", "mapping", "mapped", "delivering"],
      { limit: LOOK_AHEAD },
    );
    const accepted = await this.#steps.ledger.runsIn(["accepted"], { limit: LOOK_AHEAD, unsettled: true });
    const unfinished = await this.#steps.ledger.runsIn(AT_REST, { limit: LOOK_AHEAD, unfinished: true });
    return { inHand, runs: [...underWay, ...accepted, ...unfinished] };
  }

  waitReason(runId: string): string | undefined {
    return this.#waiting.get(runId)?.reason;
  }

  /** Services that cannot be used now, with the reason. */
  serviceWaits(): ReadonlyMap<string, string> {
    const now = this.#steps.clock.monotonicMs();
    return new Map(
      [...this.#services].filter(([, wait]) => wait.untilMs > now).map(([name, wait]) => [name, wait.reason]),
    );
  }

  /** Cancels what can be done again, lets what is being recorded end, and resolves when all hands are empty. */
  async stop(): Promise<void> {
    this.#abort.abort();
    clearTimeout(this.#timer);
    await this.#pumping;
    await Promise.allSettled(this.#tasks);
  }

  async #pump(): Promise<void> {
    while (this.#again && !this.#abort.signal.aborted) {
      this.#again = false;
      for (const desk of this.#desks) await this.#fill(desk);
    }
  }

  async #fill(desk: Desk): Promise<void> {
    if (desk.inHand.size >= desk.hands) return;
    const limit = desk.inHand.size + desk.hands + LOOK_AHEAD;
    const runs = await this.#steps.ledger.runsIn(desk.states, { limit, ...desk.only });
    for (const run of runs) {
      if (desk.inHand.size >= desk.hands || this.#abort.signal.aborted) return;
      if (this.#isInHand(run.id) || this.#waitsStill(run, desk)) continue;
      desk.inHand.add(run.id);
      const task = this.#take(run, desk).finally(() => {
        desk.inHand.delete(run.id);
        this.#tasks.delete(task);
        this.wake();
      });
      this.#tasks.add(task);
    }
  }

  #isInHand(runId: string): boolean {
    return this.#desks.some((desk) => desk.inHand.has(runId));
  }

  #waitsStill(run: Run, desk: Desk): boolean {
    const now = this.#steps.clock.monotonicMs();
    const own = this.#waiting.get(run.id);
    if (own !== undefined) {
      if (own.untilMs > now) {
        this.#wakeIn(own.untilMs - now);
        return true;
      }
      this.#waiting.delete(run.id);
    }
    const service = desk.name === "delivery" ? this.#services.get(run.binding.service) : undefined;
    if (service === undefined || service.untilMs <= now) return false;
    this.#wakeIn(service.untilMs - now);
    return true;
  }

  async #take(run: Run, desk: Desk): Promise<void> {
    const result = await this.#stepOrFault(run, desk);
    this.#release(run.id);
    if (this.#abort.signal.aborted) return;
    if (result.move !== "wait") return;
    const wait = { untilMs: this.#steps.clock.monotonicMs() + result.ms, reason: result.reason };
    if (result.wholeService === true) this.#services.set(run.binding.service, wait);
    else this.#waiting.set(run.id, wait);
    if (result.blockedBy !== undefined) {
      const others = this.#blocked.get(result.blockedBy) ?? [];
      this.#blocked.set(result.blockedBy, [...others, run.id]);
    }
    this.#wakeIn(result.ms);
  }

  /** Never rejects: whatever happens to one run, the others go on. */
  async #stepOrFault(run: Run, desk: Desk): Promise<StepResult> {
    try {
      const result = await this.#step(run, desk);
      this.#faults.delete(run.id);
      return result;
    } catch (thrown) {
      if (this.#abort.signal.aborted) return REST;
      try {
        return await this.#afterFault(run, thrown);
      } catch (second) {
        this.#steps.log.error(
          { run: run.id, err: second },
          `a fault could not be recorded: ${wordsOf(second)}`,
        );
        return waitFor(FAULT_WAIT_MS.last, wordsOf(second));
      }
    }
  }

  /** Runs that waited for this one are looked at again at once. */
  #release(runId: string): void {
    for (const waiting of this.#blocked.get(runId) ?? []) this.#waiting.delete(waiting);
    this.#blocked.delete(runId);
  }

  #step(run: Run, desk: Desk): Promise<StepResult> {
    const signal = this.#abort.signal;
    if (run.state === "claimed") return fetchInput(run, this.#steps, signal);
    if (run.state === "fetched") return mapInput(run, this.#steps, signal);
    if (desk.name === "delivery") return deliverBatches(run, this.#steps, signal);
    if (run.state !== "accepted") return finishSource(run, this.#steps, signal);
    return this.#close(run, signal);
  }

  /** An accepted run: its source is finished first (unless its rule waits for the confirmation), then its outcome is awaited. */
  async #close(run: Run, signal: AbortSignal): Promise<StepResult> {
    if (run.finishedAt === null) await finishSource(run, this.#steps, signal);
    const result = await confirmOutcome(run, this.#steps, signal);
    if (result.move === "rest") await this.#steps.spool.retire(run.id);
    return result;
  }

  /** A fault of this one item ends in quarantine; what may pass is tried again with growing pauses; nothing hangs. */
  async #afterFault(run: Run, thrown: unknown): Promise<StepResult> {
    const error =
      thrown instanceof HeadgateError
        ? thrown
        : new InvariantError("HG-BUG-001", {
            operation: "lead run",
            subject: run.id,
            message: wordsOf(thrown),
            cause: thrown,
          });
    const now = await this.#steps.ledger.run(run.id);
    const final = error instanceof RejectedError || error instanceof InvariantError;
    if (error instanceof InvariantError)
      this.#steps.log.error({ run: run.id, code: error.code, err: thrown }, wordsOf(error));
    if (final && now !== null && QUARANTINABLE.includes(now.state)) {
      await this.#steps.ledger.advanceRun(run.id, now.state, "quarantined", {
        reason: reasonOf(error),
        detail: wordsOf(error),
      });
      return { move: "next" };
    }
    const times = (this.#faults.get(run.id) ?? 0) + 1;
    this.#faults.set(run.id, times);
    const pause =
      error instanceof ConfigError
        ? FAULT_WAIT_MS.last
        : Math.min(FAULT_WAIT_MS.last, FAULT_WAIT_MS.first * 2 ** (times - 1));
    this.#steps.log.warn({ run: run.id, file: run.path, code: error.code, retryMs: pause }, wordsOf(error));
    if (now !== null && now.reason?.message !== wordsOf(error)) {
      await this.#steps.ledger.noteRun(run.id, {
        reason: reasonOf(error),
        event: "run.waiting",
        detail: wordsOf(error),
      });
    }
    return waitFor(pause, wordsOf(error));
  }

  #wakeIn(ms: number): void {
    if (this.#abort.signal.aborted) return;
    const due = this.#steps.clock.monotonicMs() + ms;
    if (this.#timer !== undefined && this.#timerDueMs <= due) return;
    clearTimeout(this.#timer);
    this.#timerDueMs = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.wake();
    }, ms);
  }

  #timerDueMs = 0;
}

const QUARANTINABLE: readonly RunState[] = ["claimed", "fetched", "mapping", "mapped", "delivering"];
