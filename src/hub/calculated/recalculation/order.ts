/** Which of the variables that wait may be calculated: none whose inputs, near or far, wait or are calculated. */
import type { MarkedVariable } from "../../store/calculated/claims.ts";

/** The calculated variables of an account, each with the variables that its formulas read. */
export type InputGraph = ReadonlyMap<number, readonly number[]>;

/**
 * A variable that has waited for so long no longer waits for inputs that were marked after it: it reads what they have
 * stored, and their outputs mark it again. Else a push that comes while an input runs would hold it back for ever.
 */
export const PATIENCE_MS = 10_000;

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
