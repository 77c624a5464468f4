/** How many runs came to a state in the last minute, on this node. */

import type { Clock } from "#core/clock.ts";
import type { RunState } from "../model.ts";

const CELLS = 60;
const CELL_MS = 1_000;

export class WorkRates {
  readonly #clock: Clock;
  readonly #cells = new Map<RunState, { readonly counts: Float64Array; atSecond: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  count(state: RunState): void {
    const { counts, atSecond } = this.#at(state);
    const cell = atSecond % CELLS;
    counts[cell] = (counts[cell] ?? 0) + 1;
  }

  perMinute(state: RunState): number {
    return this.#at(state).counts.reduce((sum, count) => sum + count, 0);
  }

  /** Empties the seconds that passed since the last call. */
  #at(state: RunState) {
    const second = Math.floor(this.#clock.monotonicMs() / CELL_MS);
    const found = this.#cells.getOrInsertComputed(state, () => ({ counts: new Float64Array(CELLS), atSecond: second }));
    for (let empty = Math.max(found.atSecond + 1, second - CELLS + 1); empty <= second; empty += 1)
      found.counts[empty % CELLS] = 0;
    found.atSecond = second;
    return found;
  }
}
