/** Readings that cannot be merged with stored points, since these are damaged. */
import { isoInstant } from "#core/clock.ts";
import { targetWords } from "#wire/index.ts";
import type { ReadingColumns } from "../store/columns.ts";
import type { DamagedPoints } from "../store/store.ts";

/** Readings of one operation that were not stored, although they can be. */
export interface Refused {
  /** Index of the operation in its group. */
  readonly operation: number;
  readonly target: string;
  readonly reason: string;
  readonly count: number;
}

/** As `DELETE /data` takes it: without its end. */
export function periodOf({ firstMs, lastMs }: Pick<DamagedPoints, "firstMs" | "lastMs">): string {
  const [from, to] = [firstMs, lastMs + 1].map((ms) => isoInstant(Temporal.Instant.fromEpochMilliseconds(ms)));
  return `from ${from} to before ${to}`;
}

export function* refusedBy(damaged: readonly DamagedPoints[], columns: ReadingColumns): Generator<Refused> {
  for (const { variableId, refused, ...period } of damaged) {
    const target = targetWords({ variableId });
    const reason = `the stored points ${periodOf(period)} are damaged: remove them, and send this period again`;
    for (const [operation, { length }] of Map.groupBy(refused, (index) => columns.operation[index] ?? 0))
      yield { operation, target, reason, count: length };
  }
}
