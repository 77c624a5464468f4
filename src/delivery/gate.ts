/** The gate to one service: how many pushes at a time, and whether any at all: breaker, `Retry-After`, refusals that wait for a person. */
import {
  BrokenCircuitError,
  bulkhead,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleType,
} from "cockatiel";
import type { Clock } from "../support/clock.ts";
import { type Backoff, pauseMs } from "./retry-table.ts";

/** A failure of the service that may pass; the only kind that the breaker counts. */
export class PassingFailure extends Error {
  readonly retryAfterMs: number | null;
  /** How often the batch was sent by now. */
  readonly attempts: number;

  constructor(words: string, retryAfterMs: number | null, attempts: number) {
    super(words);
    this.name = "PassingFailure";
    this.retryAfterMs = retryAfterMs;
    this.attempts = attempts;
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
  readonly ms: number;
}

/** Timers may end a little before the clock agrees. */
const TOLERANCE_MS = 5;

export class Gate {
  readonly #clock: Clock;
  readonly #hands;
  readonly #breaker;
  #held: { readonly reason: string; readonly untilMs: number } | null = null;
  #broken: { readonly reason: string; readonly untilMs: number } | null = null;

  constructor(options: GateOptions, clock: Clock) {
    this.#clock = clock;
    this.#hands = bulkhead(options.concurrency, Number.MAX_SAFE_INTEGER);
    const backoff = new DelegateBackoff<{ attempt: number; result: unknown }>(({ attempt, result }) => {
      const ms = pauseMs(options, attempt);
      this.#broken = { reason: wordsOfResult(result), untilMs: clock.monotonicMs() + ms };
      return ms;
    });
    this.#breaker = circuitBreaker(handleType(PassingFailure), {
      breaker: new ConsecutiveBreaker(options.breakerFailures),
      halfOpenAfter: backoff,
    });
    this.#breaker.onReset(() => {
      this.#broken = null;
    });
  }

  /** Why nothing may be sent now and for how long, or null. */
  closed(): Closure | null {
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
      : { reason: longest.reason, ms: Math.ceil(longest.untilMs - nowMs + TOLERANCE_MS) };
  }

  /** Nothing is sent for this long. */
  hold(ms: number, reason: string): void {
    const untilMs = this.#clock.monotonicMs() + ms;
    if (this.#held === null || untilMs > this.#held.untilMs) this.#held = { reason, untilMs };
  }

  /** Runs the work when there is a free hand; `GateClosed` when the breaker opened meanwhile. */
  pass<Value>(work: () => Promise<Value>, signal: AbortSignal): Promise<Value> {
    return this.#hands.execute(() => {
      // While this waited for a hand, another push may have learned that nothing goes.
      if (this.closed() !== null) throw new BrokenCircuitError();
      return this.#breaker.execute(work, signal);
    }, signal);
  }
}

function wordsOfResult(result: unknown): string {
  const error = typeof result === "object" && result !== null && "error" in result ? result.error : null;
  return error instanceof Error ? error.message : "the service fails";
}
