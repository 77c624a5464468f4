/**
 * The gate to one service: limits concurrent pushes and closes on the breaker, `Retry-After`, and refusals that a
 * person must resolve.
 */
import {
  BrokenCircuitError,
  bulkhead,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
} from "cockatiel";
import type { Clock } from "#core/clock.ts";
import type { ErrorCode } from "#core/errors.ts";
import type { Batch } from "../model.ts";
import { type Backoff, pauseMs } from "./retry-table.ts";

/** A transient failure of the service; the only kind that the breaker counts, when more than one run meets it. */
export class TransientFailure extends Error {
  /** The batch with its current attempts. */
  readonly batch: Batch;
  readonly retryAfterMs: number | null;
  /** The sent bytes may be stored. */
  readonly isUncertain: boolean;

  constructor(words: string, batch: Batch, retryAfterMs: number | null, isUncertain: boolean) {
    super(words);
    this.name = "TransientFailure";
    this.batch = batch;
    this.retryAfterMs = retryAfterMs;
    this.isUncertain = isUncertain;
  }
}

/** The breaker opened between the check of the gate and the call. */
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

interface Hold {
  readonly reason: string;
  readonly code: ErrorCode;
  readonly untilMs: number;
}

/** Timers may fire slightly before the clock reaches the time. */
const TOLERANCE_MS = 5;
/** How close the turn of a call must be, by the duration of the last call, for the call to start its preparation. */
const PREPARE_AHEAD_MS = 50;
/**
 * Limit on calls that are prepared before their turn: a crash leaves as many never-sent batches with an unknown
 * outcome.
 */
const PREPARED_MAX = 64;

/** One call, in the parts that the gate runs. */
export interface GatedCall<Prepared, Value> {
  /** Runs before the turn, so that the turn does not wait for the disk. */
  prepare(): Promise<Prepared>;
  /** Runs in its turn. */
  send(prepared: Prepared): Promise<Value>;
  /** Runs in place of `send` when the call is not sent. */
  cancel(prepared: Prepared): Promise<unknown>;
}

export class Gate {
  readonly #clock: Clock;
  readonly #slots;
  readonly #breaker;
  /** Up to two runs that failed since the last successful response. */
  readonly #failing = new Set<string>();
  readonly #concurrency: number;
  /** Number of calls that are prepared and wait for their turn. */
  #prepared = 0;
  /** The concurrency before the first response and after a failure. */
  #preparedMax: number;
  /** Calls that wait to be prepared. */
  readonly #waiting: (() => void)[] = [];
  #held: Hold | null = null;
  #retired = false;
  #broken: Hold | null = null;

  constructor(options: GateOptions, clock: Clock) {
    this.#clock = clock;
    this.#concurrency = options.concurrency;
    this.#preparedMax = options.concurrency;
    this.#slots = bulkhead(options.concurrency, Number.MAX_SAFE_INTEGER);
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
    const closures = [this.#held, this.#broken].filter((closure) => closure !== null && closure.untilMs > nowMs);
    const longest = closures.reduce(
      (last, closure) => ((closure?.untilMs ?? 0) > (last?.untilMs ?? 0) ? closure : last),
      null,
    );
    return longest === null
      ? null
      : { reason: longest.reason, code: longest.code, ms: Math.ceil(longest.untilMs - nowMs + TOLERANCE_MS) };
  }

  /** Another gate replaces this one: no further call starts. */
  retire(): void {
    this.#retired = true;
  }

  get retired(): boolean {
    return this.#retired;
  }

  /** Sends nothing for this long. */
  hold(ms: number, reason: string, code: ErrorCode): void {
    const untilMs = this.#clock.monotonicMs() + ms;
    if (this.#held === null || untilMs > this.#held.untilMs) this.#held = { reason, code, untilMs };
  }

  /** Runs a call when a slot is free; `GateClosed` when the breaker opened meanwhile. */
  async pass<Prepared, Value>(call: GatedCall<Prepared, Value>, signal: AbortSignal): Promise<Value> {
    if (this.#prepared < this.#preparedMax) this.#prepared += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let isPrepared = true;
    let isSent = false;
    try {
      signal.throwIfAborted();
      this.#assertOpen();
      const prepared = await call.prepare();
      const send = () => {
        isSent = true;
        return this.#measure(call.send(prepared));
      };
      try {
        return await this.#slots.execute(() => {
          isPrepared = false;
          this.#releasePrepared();
          // While the call waited for a slot, another push may have closed the gate.
          this.#assertOpen();
          return this.#breaker.execute(send, signal);
        }, signal);
      } catch (thrown) {
        if (!isSent) await call.cancel(prepared);
        throw thrown;
      }
    } finally {
      if (isPrepared) this.#releasePrepared();
    }
  }

  #assertOpen(): void {
    if (this.#retired || this.closed() !== null) throw new BrokenCircuitError();
  }

  /** A prepared call has ended, so that another may be prepared. */
  #releasePrepared(): void {
    this.#prepared -= 1;
    while (this.#prepared < this.#preparedMax) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#prepared += 1;
      next();
    }
  }

  async #measure<Value>(sent: Promise<Value>): Promise<Value> {
    const begunMs = this.#clock.monotonicMs();
    try {
      const value = await sent;
      this.#failing.clear();
      const tookMs = Math.max(1, this.#clock.monotonicMs() - begunMs);
      const inTime = Math.floor((this.#concurrency * PREPARE_AHEAD_MS) / tookMs);
      this.#preparedMax = Math.max(this.#concurrency, Math.min(PREPARED_MAX, inTime));
      return value;
    } catch (thrown) {
      this.#preparedMax = this.#concurrency;
      throw thrown;
    }
  }

  /** A run that fails alone has pauses of its own and must not close the gate to the others. */
  #counts(error: unknown): boolean {
    if (!(error instanceof TransientFailure)) return false;
    if (this.#failing.size < 2) this.#failing.add(error.batch.runId);
    return this.#failing.size > 1;
  }
}

function wordsOfResult(result: unknown): string {
  const error = typeof result === "object" && result !== null && "error" in result ? result.error : null;
  return error instanceof Error ? error.message : "the service fails";
}
