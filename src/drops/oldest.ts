/** Keeps the arrivals that are to be taken first (the oldest, or the first by name) up to a limit, in bounded memory, and counts the others. */
import type { Arrival } from "../model.ts";

/** Of an arrival what its age is told by. */
export type Aged = Pick<Arrival, "id" | "path" | "mtime">;

interface Kept extends Aged {
  /** Its time is a number, as it is at most drops. */
  readonly numeric: boolean;
}

/** `modified`: older content first; `name`: by the path, numbers in it by their value. */
export type TakeOrder = "modified" | "name";

export class Oldest {
  readonly #max: number;
  readonly #compare: (one: Kept, other: Kept) => number;
  #kept: Kept[] = [];
  /** The youngest of those that were kept when there were too many; who is younger need not be kept at all. */
  #youngest: Kept | null = null;
  #added = 0;

  constructor(max: number, order: TakeOrder = "modified") {
    this.#max = max;
    this.#compare = order === "name" ? byName : byAge;
  }

  get beyond(): number {
    return Math.max(0, this.#added - this.#max);
  }

  add(arrival: Aged): void {
    this.#added += 1;
    const { id, path, mtime } = arrival;
    const kept = { id, path, mtime, numeric: NUMERIC.test(mtime) };
    if (this.#youngest !== null && this.#compare(kept, this.#youngest) > 0) return;
    this.#kept.push(kept);
    if (this.#kept.length < this.#max * 2) return;
    this.#kept = this.take();
    this.#youngest = this.#kept.at(-1) ?? null;
  }

  take(): Kept[] {
    return this.#kept.toSorted(this.#compare).slice(0, this.#max);
  }
}

/**
 * Older content first, as far as the drop's times can be compared, then by name: a correction that came while nobody looked is
 * not overwritten by what it corrects.
 */
function byAge(one: Kept, other: Kept): number {
  const numeric = one.numeric && other.numeric && one.mtime.length === other.mtime.length;
  // Equal lengths: the order of the texts is the order of the numbers.
  if (numeric && one.mtime !== other.mtime) return one.mtime < other.mtime ? -1 : 1;
  return one.path < other.path ? -1 : one.path > other.path ? 1 : one.id - other.id;
}

const names = new Intl.Collator("en", { numeric: true });

/** `2019-9.csv` before `2019-10.csv`. */
function byName(one: Kept, other: Kept): number {
  return (
    names.compare(one.path, other.path) ||
    (one.path < other.path ? -1 : one.path > other.path ? 1 : one.id - other.id)
  );
}

const NUMERIC = /^\d+(\.\d+)?$/;
