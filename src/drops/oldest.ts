/** Keeps the arrivals that are to be taken first (the oldest, or the first by name) up to a limit, in bounded memory, and counts the others. */
import type { Arrival } from "../model.ts";
import { compareIn, type TakeOrder, timed } from "./pickup-order.ts";

/** Of an arrival what its age is told by. */
export type Aged = Pick<Arrival, "id" | "path" | "mtime">;

type Kept = ReturnType<typeof timed<Aged>>;

export class Oldest {
  readonly #max: number;
  readonly #compare: (one: Kept, other: Kept) => number;
  #kept: Kept[] = [];
  /** The youngest of those that were kept when there were too many; who is younger need not be kept at all. */
  #youngest: Kept | null = null;
  #added = 0;

  constructor(max: number, order: TakeOrder = "modified") {
    this.#max = max;
    const compare = compareIn(order);
    this.#compare = (one, other) => compare(one, other) || one.id - other.id;
  }

  get beyond(): number {
    return Math.max(0, this.#added - this.#max);
  }

  add(arrival: Aged): void {
    this.#added += 1;
    const { id, path, mtime } = arrival;
    const kept = timed({ id, path, mtime });
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
