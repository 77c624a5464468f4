/** The variables that a group of operations wrote, with the bounds of what was written: for those who watch points. */
import type { ReadingColumns } from "../store/columns.ts";

/** Columns of one length: a row for each variable. */
export interface TouchedPoints {
  readonly ids: readonly number[];
  /** Dates of the first and the last written reading. */
  readonly fromMs: Float64Array;
  readonly toMs: Float64Array;
  /** Bounds of the written values. */
  readonly min: Float64Array;
  readonly max: Float64Array;
}

interface Bounds {
  fromMs: number;
  toMs: number;
  min: number;
  max: number;
}

export class Touched {
  readonly #bounds = new Map<number, Bounds>();

  clear(): void {
    this.#bounds.clear();
  }

  add({ length, variables, variable, atMs, value }: ReadingColumns): void {
    const bounds = variables.map(({ id }) => this.#of(id));
    for (let index = 0; index < length; index += 1) {
      const one = bounds[variable[index] ?? 0];
      if (one === undefined) continue;
      const at = atMs[index] ?? 0;
      const reading = value[index] ?? 0;
      if (at < one.fromMs) one.fromMs = at;
      if (at > one.toMs) one.toMs = at;
      if (reading < one.min) one.min = reading;
      if (reading > one.max) one.max = reading;
    }
  }

  /** Null: none was written. */
  report(): TouchedPoints | null {
    // A variable whose readings were all discarded was not written.
    const written = [...this.#bounds].filter(([, { fromMs, toMs }]) => fromMs <= toMs);
    if (written.length === 0) return null;
    const column = (name: keyof Bounds) => Float64Array.from(written, ([, bounds]) => bounds[name]);
    return {
      ids: written.map(([id]) => id),
      ...{ fromMs: column("fromMs"), toMs: column("toMs"), min: column("min"), max: column("max") },
    };
  }

  #of(id: number): Bounds {
    const known = this.#bounds.get(id);
    if (known !== undefined) return known;
    const { POSITIVE_INFINITY: high, NEGATIVE_INFINITY: low } = Number;
    const made = { fromMs: high, toMs: low, min: high, max: low };
    this.#bounds.set(id, made);
    return made;
  }
}
