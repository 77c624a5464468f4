/**
 * Keeps the first arrivals in the order of pickup (the oldest, or the first by name) up to a limit, in
 * bounded memory, and counts the others.
 */
import type { Arrival } from "../model.ts";
import { compareIn, type PickupOrder, timed } from "./pickup-order.ts";

/** The facts of an arrival that determine its age. */
export type Aged = Pick<Arrival, "id" | "path" | "mtime">;

type Kept = ReturnType<typeof timed<Aged>>;

export class Oldest {
  readonly #max: number;
  readonly #compare: (one: Kept, other: Kept) => number;
  #kept: Kept[] = [];
  /** The youngest kept arrival once the limit was reached; a younger one need not be kept. */
  #youngest: Kept | null = null;
  #added = 0;

  constructor(max: number, order: PickupOrder = "modified") {
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
