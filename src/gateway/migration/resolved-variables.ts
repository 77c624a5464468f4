/** Resolves the targets of a migration to variables of the service. */

import { targetWords } from "#wire/target.ts";
import type { PushTarget } from "../model.ts";
import type { Expectation } from "./report/expectation.ts";

/** Queries to the service; errors are those of its client. */
export interface TargetReader {
  /** By the words of each target; null: no such variable. */
  resolve(
    targets: readonly PushTarget[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, { readonly id: number } | null>>;
}

/** The id of its readings, and the target in words. */
export interface ResolvedTarget {
  readonly id: number;
  readonly target: string;
}

const TARGETS_PER_CALL = 1_000;

/**
 * By the id of the variable. Targets that name the same variable are joined; `onMissing` is called for targets
 * without a variable.
 */
export async function resolveVariables(
  readings: Expectation,
  reader: TargetReader,
  signal: AbortSignal,
  onMissing: (missing: ResolvedTarget) => void,
): Promise<ReadonlyMap<number, ResolvedTarget>> {
  const found = new Map<number, ResolvedTarget>();
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
