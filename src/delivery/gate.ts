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
/** How near the turn of a call is to be for it to begin, by what the last one took. */
const NEAR_MS = 50;
/** Most calls that have begun before their turn: a crash leaves as many batches in doubt that were never sent. */
const NEAR_MAX = 64;

/** One call, in the parts that the gate leads it through. */
export interface GatedCall<Begun, Value> {
  /** Before its turn, which need not wait for the disk then. */
  begin(): Promise<Begun>;
  /** In its turn. */
  send(begun: Begun): Promise<Value>;
  /** In place of `send`: it does not go after all. */
  unsent(begun: Begun): Promise<unknown>;
}

export class Gate {
  readonly #clock: Clock;
  readonly #hands;
  readonly #breaker;
  /** Up to two runs that failed since the last answer that was no failure. */
  readonly #failing = new Set<string>();
  readonly #concurrency: number;
  /** Calls that have begun and wait for their turn. */
  #near = 0;
  /** As many as have hands before the first answer, and after a failure. */
  #nearMax: number;
  /** What waits to come near. */
  readonly #far: (() => void)[] = [];
  #held: Closing | null = null;
  #retired = false;
  #broken: Closing | null = null;

  constructor(options: GateOptions, clock: Clock) {
    this.#clock = clock;
    this.#concurrency = options.concurrency;
    this.#nearMax = options.concurrency;
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

  /** Leads a call through when there is a free hand; `GateClosed` when the breaker opened meanwhile. */
  async pass<Begun, Value>(call: GatedCall<Begun, Value>, signal: AbortSignal): Promise<Value> {
    if (this.#near < this.#nearMax) this.#near += 1;
    else await new Promise<void>((resolve) => this.#far.push(resolve));
    let isNear = true;
    let isSent = false;
    try {
      signal.throwIfAborted();
      this.#assertOpen();
      const begun = await call.begin();
      const send = () => {
        isSent = true;
        return this.#measure(call.send(begun));
      };
      try {
        return await this.#hands.execute(() => {
          isNear = false;
          this.#leave();
          // While this waited for a hand, another push may have learned that nothing goes.
          this.#assertOpen();
          return this.#breaker.execute(send, signal);
        }, signal);
      } catch (thrown) {
        if (!isSent) await call.unsent(begun);
        throw thrown;
      }
    } finally {
      if (isNear) this.#leave();
    }
  }

  #assertOpen(): void {
    if (this.#retired || this.closed() !== null) throw new BrokenCircuitError();
  }

  /** One is near no more: others may come. */
  #leave(): void {
    this.#near -= 1;
    while (this.#near < this.#nearMax) {
      const next = this.#far.shift();
      if (next === undefined) return;
      this.#near += 1;
      next();
    }
  }

  async #measure<Value>(sent: Promise<Value>): Promise<Value> {
    const begunMs = this.#clock.monotonicMs();
    try {
      const value = await sent;
      this.#failing.clear();
      const tookMs = Math.max(1, this.#clock.monotonicMs() - begunMs);
      const inTime = Math.floor((this.#concurrency * NEAR_MS) / tookMs);
      this.#nearMax = Math.max(this.#concurrency, Math.min(NEAR_MAX, inTime));
      return value;
    } catch (thrown) {
      this.#nearMax = this.#concurrency;
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
