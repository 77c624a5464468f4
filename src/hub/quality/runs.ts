/** Finds runs of slots without a point. */
import type { Grid } from "./grid.ts";

/** From a slot to another, excluded. */
export type OnRun = (from: number, end: number) => void;

export class MissingRuns {
  readonly #grid: Grid;
  readonly #onRun: OnRun;
  /** The first slot of which nothing is known yet. */
  #next: number;

  constructor(grid: Grid, onRun: OnRun) {
    this.#grid = grid;
    this.#onRun = onRun;
    this.#next = grid.first;
  }

  /** In order; every slot from `from` to `end` (excluded) has a point. */
  present(from: number, end = from + 1): void {
    const reached = Math.min(from, this.#grid.end);
    if (reached > this.#next) this.#onRun(this.#next, reached);
    this.#next = Math.max(this.#next, Math.min(end, this.#grid.end));
  }

  finish(): void {
    this.present(this.#grid.end, this.#grid.end);
  }
}
