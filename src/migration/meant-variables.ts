/** Which variables of the service the targets of a migration mean. */
import type { PushTarget } from "../model.ts";
import { targetWords } from "../wire/index.ts";
import type { Expectation } from "./expectation.ts";

/** What is asked of the service; errors are those of its client. */
export interface TargetReader {
  /** By the words of each target; null: no such variable. */
  resolve(
    targets: readonly PushTarget[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, { readonly id: number } | null>>;
}

/** The id of its readings, and the target in words. */
export interface MeantTarget {
  readonly id: number;
  readonly target: string;
}

const TARGETS_PER_CALL = 1_000;

/** By the id of the variable. Targets that mean the same variable become one; `onMissing` hears of those that mean none. */
export async function meantVariables(
  readings: Expectation,
  reader: TargetReader,
  signal: AbortSignal,
  onMissing: (missing: MeantTarget) => void,
): Promise<ReadonlyMap<number, MeantTarget>> {
  const found = new Map<number, MeantTarget>();
  const targets = readings.targets();
  for (let at = 0; at < targets.length; at += TARGETS_PER_CALL) {
    const some = targets.slice(at, at + TARGETS_PER_CALL);
    const meant = await reader.resolve(
      some.map(({ target }) => target),
      signal,
    );
    for (const { id, target } of some) {
      const words = targetWords(target);
      const variable = meant.get(words) ?? null;
      const same = variable === null ? undefined : found.get(variable.id);
      if (variable === null) onMissing({ id, target: words });
      else if (same === undefined) found.set(variable.id, { id, target: words });
      else readings.merge(id, same.id);
    }
  }
  return found;
}
