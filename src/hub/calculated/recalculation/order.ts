/** Which of the variables that wait may be calculated, and in which version: none whose inputs, near or far, wait. */
import type { MarkedVariable } from "../../store/calculated/claims.ts";

/**
 * A variable that has waited for so long no longer waits for inputs that were marked after it: it reads what they have
 * stored, and their outputs mark it again. Else a push that comes while an input runs would hold it back for ever.
 */
export const PATIENCE_MS = 10_000;

/** A lane that was held at each attempt for so long is waited for: its holders follow upon each other. */
const PASSED_OVER_MS = 5_000;

/**
 * The version of outputs for which a formula gives none (specification, *Calculated variables*, rule 3): the hour of
 * the calculation in UTC, rounded up, as `2026-03-01T13:00:00`; a time exactly on the hour is kept.
 */
export function defaultVersionOf(now: Temporal.Instant): string {
  const hour = now.round({ smallestUnit: "hour", roundingMode: "ceil" });
  return hour.toZonedDateTimeISO("UTC").toPlainDateTime().toString({ smallestUnit: "second" });
}

/**
 * Accounts whose lane another transaction holds: a push of many points holds it for long, and a claim that waited for
 * it would keep the claims of all other accounts waiting. So these are passed over, but not for ever.
 */
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

/** The calculated variables of an account, each with the variables that its formulas read. */
type InputGraph = ReadonlyMap<number, readonly number[]>;

/** In the order of `due`. `busy`: variables that are calculated now. */
export function readyVariables(
  graph: InputGraph,
  due: readonly MarkedVariable[],
  busy: readonly MarkedVariable[],
  nowMs: number,
): IteratorObject<number> {
  const marked = new Map<number, number>();
  for (const { id, markedMs } of [...due, ...busy]) marked.set(id, Math.min(markedMs, marked.get(id) ?? markedMs));
  const unsettledBy = (untilMs: number) => {
    const reads = new Map<number, boolean>();
    /** Whether one of the inputs, near or far, waits or is calculated for changes up to that time. */
    const readsUnsettled = (id: number): boolean => {
      const known = reads.get(id);
      if (known !== undefined) return known;
      // Cycles are refused when variables are defined; one would stop everything here.
      reads.set(id, false);
      const isUnsettled = (input: number) => (marked.get(input) ?? Number.POSITIVE_INFINITY) <= untilMs;
      const found = (graph.get(id) ?? []).some((input) => isUnsettled(input) || readsUnsettled(input));
      reads.set(id, found);
      return found;
    };
    return readsUnsettled;
  };
  const waitsForAny = unsettledBy(Number.MAX_VALUE);
  const running = new Set(busy.map(({ id }) => id));
  return due
    .values()
    .filter(({ id, markedMs }) => {
      if (running.has(id)) return false;
      if (!waitsForAny(id)) return true;
      return nowMs - markedMs >= PATIENCE_MS && !unsettledBy(markedMs)(id);
    })
    .map(({ id }) => id);
}
