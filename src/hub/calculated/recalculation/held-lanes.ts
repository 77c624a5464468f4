/**
 * Accounts whose lane another transaction holds: a push of many points holds it for long, and a claim that waited for
 * it would keep the claims of all other accounts waiting. So these are passed over, but not for ever.
 */

/** A lane that was held at each attempt for so long is waited for: its holders follow upon each other. */
const PASSED_OVER_MS = 5_000;

export class HeldLanes {
  readonly #since = new Map<number, number>();

  get isEmpty(): boolean {
    return this.#since.size === 0;
  }

  /** Whether the next claim waits for the lane. */
  isAwaited(accountId: number, nowMs: number): boolean {
    return nowMs - (this.#since.get(accountId) ?? nowMs) >= PASSED_OVER_MS;
  }

  held(accountId: number, nowMs: number): void {
    if (!this.#since.has(accountId)) this.#since.set(accountId, nowMs);
  }

  free(accountId: number): void {
    this.#since.delete(accountId);
  }

  /** Accounts in which nothing waits are forgotten. */
  keep(accountIds: readonly number[]): void {
    const kept = new Set(accountIds);
    for (const accountId of this.#since.keys()) if (!kept.has(accountId)) this.#since.delete(accountId);
  }
}
