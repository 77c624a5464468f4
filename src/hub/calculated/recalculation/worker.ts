/**
 * The thread that calculates: it claims what is due, some calculations side by side, and sleeps until it is woken. Its
 * only task ends with the hub; what was not finished then is free for the next node, or the next start.
 */
import { type MessagePort, workerData } from "node:worker_threads";
import { systemClock as clock } from "#core/clock.ts";
import { TransientError, wordsOf } from "#core/errors.ts";
import { armFault, faultPoint } from "#core/faults.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import type { Calculation } from "../../store/calculated/calculation-rows.ts";
import { SUSPICIOUS_TAKEOVERS } from "../../store/calculated/claims.ts";
import { openCalculationStore } from "../../store/open.ts";
import { defaultVersionOf, HeldLanes, readyVariables } from "./order.ts";
import {
  createEngines,
  type FromThread,
  type HandedPart,
  performCalculation,
  type RecalculationData,
  type RecalculationTask,
  type RunParts,
  type ToThread,
} from "./run.ts";

/** Calculations side by side, of all accounts and of one: a script that takes its whole time delays few others. */
const SIDE_BY_SIDE = 4;
const OF_ONE_ACCOUNT = 2;
const LEASE_MS = 60_000;
/** Other nodes mark and release, too. */
const POLL_MS = 2_000;
/** Interval while a lane is held: nothing wakes the thread when it is free. */
const HELD_POLL_MS = 200;

const { store: storeOptions, calculated, node, fault } = workerData as RecalculationData;

/** The only task of the thread. */
export async function recalculate({ port }: RecalculationTask): Promise<void> {
  if (fault !== null) armFault(fault);
  const store = await openCalculationStore(storeOptions);
  const engines = createEngines(calculated, SIDE_BY_SIDE);
  const stopping = new AbortController();
  const handover = createHandover(port);
  let woken = Promise.withResolvers<void>();
  const wake = () => woken.resolve();
  port.on("message", (message: ToThread) => {
    if (message.type === "accepted") handover.accepted(message.part, message.fault);
    if (message.type === "stop") stopping.abort();
    wake();
  });
  const report = (message: FromThread) => port.postMessage(message);
  const running = new RunningCalculations(
    { store, engines, clock, node, inputRows: calculated.inputRows, hand: handover.hand },
    stopping.signal,
    (ended) => {
      report(ended);
      wake();
    },
  );
  const renewal = setInterval(() => void running.renew(), LEASE_MS / 3);
  try {
    if (storeOptions.kind === "sqlite") await store.claims.free();
    while (!stopping.signal.aborted) {
      woken = Promise.withResolvers<void>();
      try {
        if (await running.claim()) continue;
      } catch (thrown) {
        if (!isDatabaseTrouble(thrown)) throw thrown;
        report({ type: "trouble", message: wordsOf(thrown) });
      }
      const timer = setTimeout(wake, running.heldLanes.isEmpty ? POLL_MS : HELD_POLL_MS);
      await woken.promise;
      clearTimeout(timer);
    }
  } finally {
    clearInterval(renewal);
    stopping.abort();
    handover.refuse();
    await engines.close();
    await running.leave();
    await store.close();
    port.close();
  }
}

interface Running {
  readonly run: Calculation;
  readonly lost: AbortController;
  readonly performed: Promise<void>;
}

/** The calculations of this thread. */
class RunningCalculations {
  readonly #parts: Omit<RunParts, "signal">;
  readonly #stopping: AbortSignal;
  readonly #ended: (message: FromThread) => void;
  readonly #running = new Map<number, Running>();
  readonly heldLanes = new HeldLanes();

  constructor(parts: Omit<RunParts, "signal">, stopping: AbortSignal, ended: (message: FromThread) => void) {
    this.#parts = parts;
    this.#stopping = stopping;
    this.#ended = ended;
  }

  /** Begins one calculation; false: none can begin now. */
  async claim(): Promise<boolean> {
    if (this.#running.size >= SIDE_BY_SIDE) return false;
    // A run that may have ended the thread before takes no other one with it.
    if (this.#running.values().some(({ run }) => run.takeovers >= SUSPICIOUS_TAKEOVERS)) return false;
    const { claims } = this.#parts.store;
    const isAlone = this.#running.size === 0;
    const nowMs = clock.now().epochMilliseconds;
    const terms = { node, nowMs, untilMs: nowMs + LEASE_MS, defaultVersion: defaultVersionOf(clock.now()), isAlone };
    const waiting = await claims.waitingAccounts(nowMs);
    this.heldLanes.keep(waiting);
    for (const accountId of waiting) {
      const own = this.#running.values().filter(({ run }) => run.accountId === accountId);
      if ([...own].length >= OF_ONE_ACCOUNT) continue;
      const waits = this.heldLanes.isAwaited(accountId, clock.monotonicMs());
      const run = await claims.claim(accountId, { ...terms, waits }, readyVariables);
      if (run === "held") {
        this.heldLanes.held(accountId, clock.monotonicMs());
        continue;
      }
      this.heldLanes.free(accountId);
      if (run === "alone") return false;
      if (run === null) continue;
      faultPoint("hub.calculation.claimed");
      this.#begin(run);
      return true;
    }
    return false;
  }

  #begin(run: Calculation): void {
    const { id: calculationId, accountId, variableId } = run;
    const lost = new AbortController();
    const since = clock.monotonicMs();
    const signal = AbortSignal.any([this.#stopping, lost.signal]);
    const ending = performCalculation(run, { ...this.#parts, signal }).catch((thrown: unknown) => {
      // It is taken over when its lease ends.
      this.#ended({ type: "trouble", message: wordsOf(thrown) });
      return "lost" as const;
    });
    const performed = ending.then((end) => {
      if (!this.#stopping.aborted) this.#running.delete(calculationId);
      const seconds = (clock.monotonicMs() - since) / 1_000;
      this.#ended({ type: "ended", calculationId, accountId, variableId, end, seconds });
    });
    this.#running.set(calculationId, { run, lost, performed });
  }

  async renew(): Promise<void> {
    const untilMs = clock.now().epochMilliseconds + LEASE_MS;
    for (const [id, { lost }] of this.#running) {
      // A database that is away says nothing about the lease.
      const isOwn = await this.#parts.store.claims.renew(id, node, untilMs).catch(() => true);
      if (!isOwn) lost.abort();
    }
  }

  /** Waits until the calculations have stopped; other nodes may take them over at once. */
  async leave(): Promise<void> {
    const left = [...this.#running.values()];
    await Promise.all(left.map(({ performed }) => performed));
    for (const { run } of left) await this.#parts.store.claims.leave(run.id, node).catch(() => undefined);
  }
}
/** Parts on their way to the main thread, which accepts them as operations. */
function createHandover(port: MessagePort) {
  const waiting = new Map<number, PromiseWithResolvers<void>>();
  let last = 0;
  return {
    hand(handed: HandedPart): Promise<void> {
      last += 1;
      const answer = Promise.withResolvers<void>();
      waiting.set(last, answer);
      const message: FromThread = { type: "part", part: last, handed };
      port.postMessage(message);
      return answer.promise;
    },
    accepted(part: number, words: string | null): void {
      const answer = waiting.get(part);
      waiting.delete(part);
      if (words === null) answer?.resolve();
      else answer?.reject(notAccepted(words));
    },
    /** The hub ends, and the main thread no longer answers. */
    refuse(): void {
      for (const answer of waiting.values()) answer.reject(notAccepted("the hub ends"));
      waiting.clear();
    },
  };
}

function notAccepted(message: string): TransientError {
  const facts = { operation: "calculate", subject: "outputs", message: `the outputs were not accepted: ${message}` };
  return new TransientError("HG-HUB-013", facts);
}
