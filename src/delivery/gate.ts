/** The gate to one service: how many pushes at a time, and whether any at all: breaker, `Retry-After`, refusals that wait for a person. */
import {
  BrokenCircuitError,
  bulkhead,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
} from "cockatiel";
import type { Batch } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import type { ErrorCode } from "../support/errors.ts";
import { type Backoff, pauseMs } from "./retry-table.ts";

/** A failure of the service that may pass; the only kind that the breaker counts, when more than one run meets it. */
export class PassingFailure extends Error {
  /** With its attempts by now. */
  readonly batch: Batch;
  readonly retryAfterMs: number | null;
  /** What was sent may be stored. */
  readonly doubtful: boolean;

  constructor(words: string, batch: Batch, retryAfterMs: number | null, doubtful: boolean) {
    super(words);
    this.name = "PassingFailure";
    this.batch = batch;
    this.retryAfterMs = retryAfterMs;
    this.doubtful = doubtful;
  }
}

/** The breaker opened between the look at the gate and the way through. */
export { BrokenCircuitError as GateClosed };

export interface GateOptions extends Backoff {
  readonly concurrency: number;
  readonly breakerFailures: number;
}

export interface Closure {
  readonly reason: string;
  readonly code: ErrorCode;
  readonly ms: number;
}

interface Closing {
  readonly reason: string;
  readonly code: ErrorCode;
  readonly untilMs: number;
}

/** Timers may end a little before the clock agrees. */
const TOLERANCE_MS = 5;
/** How near the turn of a batch is to be for it to be journalled before, by what the last call took. */
const AHEAD_MS = 50;
/** Most batches that are journalled before their turn: a crash leaves as many in doubt that were never sent. */
const AHEAD_MAX = 64;

export class Gate {
  readonly #clock: Clock;
  readonly #hands;
  readonly #breaker;
  /** Up to two runs that failed since the last answer that was no failure. */
  readonly #failing = new Set<string>();
  readonly #concurrency: number;
  #ahead = 0;
  /** How many may be ahead: none before the first answer, and none after a failure. */
  #aheadMax = 0;
  #held: Closing | null = null;
  #retired = false;
  #broken: Closing | null = null;

  constructor(options: GateOptions, clock: Clock) {
    this.#clock = clock;
    this.#concurrency = options.concurrency;
    this.#hands = bulkhead(options.concurrency, Number.MAX_SAFE_INTEGER);
    const backoff = new DelegateBackoff<{ attempt: number; result: unknown }>(({ attempt, result }) => {
      const ms = pauseMs(options, attempt);
      this.#broken = {
        reason: wordsOfResult(result),
        code: "HG-PUSH-001",
        untilMs: clock.monotonicMs() + ms,
      };
      return ms;
    });
    this.#breaker = circuitBreaker(
      handleWhen((error) => this.#counts(error)),
      {
        breaker: new ConsecutiveBreaker(options.breakerFailures),
        halfOpenAfter: backoff,
      },
    );
    this.#breaker.onReset(() => {
      this.#broken = null;
    });
  }

  /** Why nothing may be sent now and for how long, or null. */
  closed(): Closure | null {
    if (this.#held === null && this.#broken === null) return null;
    const nowMs = this.#clock.monotonicMs() + TOLERANCE_MS;
    const closures = [this.#held, this.#broken].filter(
      (closure) => closure !== null && closure.untilMs > nowMs,
    );
    const longest = closures.reduce(
      (last, closure) => ((closure?.untilMs ?? 0) > (last?.untilMs ?? 0) ? closure : last),
      null,
    );
    return longest === null
      ? null
      : { reason: longest.reason, code: longest.code, ms: Math.ceil(longest.untilMs - nowMs + TOLERANCE_MS) };
  }

  /** Another takes its place: no call begins any more. */
  retire(): void {
    this.#retired = true;
  }

  get retired(): boolean {
    return this.#retired;
  }

  /** Nothing is sent for this long. */
  hold(ms: number, reason: string, code: ErrorCode): void {
    const untilMs = this.#clock.monotonicMs() + ms;
    if (this.#held === null || untilMs > this.#held.untilMs) this.#held = { reason, code, untilMs };
  }

  /**
   * Whether a batch may be journalled as being sent before its turn comes, so that turns need not wait for the disk. Each is counted until
   * `stepBack`.
   */
  stepAhead(): boolean {
    if (this.#ahead >= this.#aheadMax) return false;
    this.#ahead += 1;
    return true;
  }

  stepBack(): void {
    this.#ahead -= 1;
  }

  /** Runs the work when there is a free hand; `GateClosed` when the breaker opened meanwhile. */
  pass<Value>(work: () => Promise<Value>, signal: AbortSignal): Promise<Value> {
    return this.#hands.execute(() => {
      // While this waited for a hand, another push may have learned that nothing goes.
      if (this.#retired || this.closed() !== null) throw new BrokenCircuitError();
      return this.#breaker.execute(() => this.#measure(work), signal);
    }, signal);
  }

  async #measure<Value>(work: () => Promise<Value>): Promise<Value> {
    const begunMs = this.#clock.monotonicMs();
    try {
      const value = await work();
      this.#failing.clear();
      const tookMs = Math.max(1, this.#clock.monotonicMs() - begunMs);
      this.#aheadMax = Math.min(AHEAD_MAX, Math.floor((this.#concurrency * AHEAD_MS) / tookMs));
      return value;
    } catch (thrown) {
      this.#aheadMax = 0;
      throw thrown;
    }
  }

  /** A run that fails alone has pauses of its own, and must not close the gate to the others. */
  #counts(error: unknown): boolean {
    if (!(error instanceof PassingFailure)) return false;
    if (this.#failing.size < 2) this.#failing.add(error.batch.runId);
    return this.#failing.size > 1;
  }
}

function wordsOfResult(result: unknown): string {
  const error = typeof result === "object" && result !== null && "error" in result ? result.error : null;
  return error instanceof Error ? error.message : "the service fails";
}
