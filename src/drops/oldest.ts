/** Keeps the oldest arrivals up to a limit, in bounded memory, and counts the others. */
import type { Arrival } from "../model.ts";

/** Of an arrival what its age is told by. */
export type Aged = Pick<Arrival, "id" | "path" | "mtime">;

export class Oldest {
  readonly #max: number;
  #kept: Aged[] = [];
  /** The youngest of those that were kept when there were too many; who is younger need not be kept at all. */
  #youngest: Aged | null = null;
  #added = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get beyond(): number {
    return Math.max(0, this.#added - this.#max);
  }

  add(arrival: Aged): void {
    this.#added += 1;
    if (this.#youngest !== null && byAge(arrival, this.#youngest) > 0) return;
    const { id, path, mtime } = arrival;
    this.#kept.push({ id, path, mtime });
    if (this.#kept.length < this.#max * 2) return;
    this.#kept = this.take();
    this.#youngest = this.#kept.at(-1) ?? null;
  }

  take(): Aged[] {
    return this.#kept.toSorted(byAge).slice(0, this.#max);
  }
}

/**
 * Older content first, as far as the drop's times can be compared, then by name: a correction that came while nobody looked is
 * not overwritten by what it corrects.
 */
function byAge(one: Aged, other: Aged): number {
  const numeric =
    NUMERIC.test(one.mtime) && NUMERIC.test(other.mtime) && one.mtime.length === other.mtime.length;
  // Equal lengths: the order of the texts is the order of the numbers.
  if (numeric && one.mtime !== other.mtime) return one.mtime < other.mtime ? -1 : 1;
  return one.path < other.path ? -1 : one.path > other.path ? 1 : one.id - other.id;
}

const NUMERIC = /^\d+(\.\d+)?$/;
