/** Aggregates of the values of a block, so that a read of periods that hold all of it needs none of its points. */

/** As `PeriodSums` in `src/hub/data/buckets.ts`. */
export interface BlockSums {
  /** The sum is `sum` + `error`. */
  readonly sum: number;
  readonly error: number;
  readonly min: number;
  readonly max: number;
}

/** Sums of larger values may have no double. */
const VALUE_MAX = 1e150;

/** Additions lose nothing that they round off (the method of Neumaier). Null: a value is too large. */
export function sumsOf(values: Float64Array): BlockSums | null {
  let sum = 0;
  let error = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    const next = sum + value;
    error += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return min < -VALUE_MAX || max > VALUE_MAX ? null : { sum, error, min, max };
}
