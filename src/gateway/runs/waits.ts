/**
 * Keeps which runs wait for a time, for a service or for another run. In memory only: a restart tries
 * everything again.
 */

import type { Clock } from "#core/clock.ts";
import type { Run } from "../model.ts";
import type { StepResult } from "./steps/steps.ts";

/** Milliseconds between attempts at what fails, from the first to the longest. */
export const FAULT_WAIT_MS = { first: 1_000, last: 60_000 } as const;

interface Wait {
  readonly untilMs: number;
  readonly reason: string;
}

/** Receives why a service cannot be used, and null after each success. */
export type OnService = (service: string, reason: string | null) => void;

export class Waits {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Wait>();
  readonly #services = new Map<string, Wait>();
  /** Why the last delivery to a service failed, by service. */
  readonly #failing = new Map<string, string>();
  /** Runs that wait for another run, by the id of the other. */
  readonly #behind = new Map<string, Set<string>>();

  readonly #onService: OnService;

  constructor(clock: Clock, onService: OnService = () => undefined) {
    this.#clock = clock;
    this.#onService = onService;
  }

  /** Keeps the wait that is the result of a step; `isBlocked`: whether that run is still in the way. */
  async note(
    run: Run,
    { ms, reason, failing, wholeService, blockedBy }: Extract<StepResult, { move: "wait" }>,
    isBlocked: (by: string) => Promise<boolean>,
  ): Promise<void> {
    const { service } = run.binding;
    if (failing === true) this.failed(service, reason);
    if (wholeService === true) this.service(service, ms, reason);
    else if (blockedBy === undefined) this.run(run.id, ms, reason);
    else if (await isBlocked(blockedBy)) {
      this.run(run.id, ms, reason);
      this.behind(run.id, blockedBy);
    }
  }

  run(id: string, ms: number, reason: string): void {
    this.#runs.set(id, { untilMs: this.#clock.monotonicMs() + ms, reason });
  }

  service(name: string, ms: number, reason: string): void {
    this.#services.set(name, { untilMs: this.#clock.monotonicMs() + ms, reason });
  }

  behind(id: string, other: string): void {
    const waiting = this.#behind.get(other) ?? new Set();
    this.#behind.set(other, waiting.add(id));
  }

  failed(service: string, reason: string): void {
    this.#failing.set(service, reason);
    this.#onService(service, reason);
  }

  succeeded(service: string): void {
    this.#failing.delete(service);
    this.#onService(service, null);
  }

  /** Ends all waits for a service, and forgets its failure. */
  forgetService(service: string): void {
    this.#services.delete(service);
    this.#failing.delete(service);
    // The service that a run waited for is not kept; runs that waited for something else wait again when they
    // have to.
    this.#runs.clear();
  }

  clear(id: string): void {
    this.#runs.delete(id);
  }

  /** Ends the waits for this run. Returns false when there were none. */
  release(id: string): boolean {
    for (const waiting of this.#behind.get(id) ?? []) this.#runs.delete(waiting);
    return this.#behind.delete(id);
  }

  /** Returns the milliseconds that a run still has to wait, or 0. */
  left(id: string, service: string | null): number {
    const now = this.#clock.monotonicMs();
    const own = (this.#runs.get(id)?.untilMs ?? 0) - now;
    if (own > 0) return own;
    this.#runs.delete(id);
    return service === null ? 0 : Math.max(0, (this.#services.get(service)?.untilMs ?? 0) - now);
  }

  /** Whether a run waits for nothing of its own; `again` receives the milliseconds that it still has to wait. */
  isOver(id: string, again: (ms: number) => void): boolean {
    const left = this.left(id, null);
    if (left > 0) again(left);
    return left === 0;
  }

  reason(id: string): string | undefined {
    return this.#runs.get(id)?.reason;
  }

  /** Services that cannot be used now, with the reason. */
  failing(): ReadonlyMap<string, string> {
    const now = this.#clock.monotonicMs();
    const waiting = [...this.#services].flatMap(([name, { untilMs, reason }]) =>
      untilMs > now ? [[name, reason] as const] : [],
    );
    return new Map([...this.#failing, ...waiting]);
  }
}
