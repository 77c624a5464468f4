/** Which of the variables that wait may be calculated: none whose inputs, near or far, wait or are calculated. */

/** The calculated variables of an account, each with the variables that its formulas read. */
export type InputGraph = ReadonlyMap<number, readonly number[]>;

/** In the order of `due`. `busy`: variables that are calculated now. */
export function readyVariables(graph: InputGraph, due: readonly number[], busy: ReadonlySet<number>): number[] {
  const unsettled = new Set([...due, ...busy]);
  const reads = new Map<number, boolean>();
  /** Whether one of the inputs, near or far, is unsettled. */
  const readsUnsettled = (id: number): boolean => {
    const known = reads.get(id);
    if (known !== undefined) return known;
    // Cycles are refused when variables are defined; one would stop everything here.
    reads.set(id, false);
    const found = (graph.get(id) ?? []).some((input) => unsettled.has(input) || readsUnsettled(input));
    reads.set(id, found);
    return found;
  };
  return due.filter((id) => !busy.has(id) && !readsUnsettled(id));
}
