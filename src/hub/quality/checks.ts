/** Checks of a series that need one pass over its points, in order of date. */
import type { Grid } from "./grid.ts";

/** The first entries of a list, and how many there are. */
export class Listed<Entry> {
  readonly list: Entry[] = [];
  readonly #max: number;
  count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(entry: () => Entry): void {
    this.count += 1;
    if (this.list.length < this.#max) this.list.push(entry());
  }
}

export interface FlatLine {
  readonly fromMs: number;
  readonly lastMs: number;
  readonly points: number;
  readonly value: number;
}

export interface FlatLineRule {
  readonly points: number;
  readonly lengthMs: number;
  readonly zeros: boolean;
}

/** Runs of equal values. */
export class FlatLines {
  readonly found: Listed<FlatLine>;
  /** Points of all flat lines. */
  points = 0;
  readonly #rule: FlatLineRule;
  #value = Number.NaN;
  #fromMs = 0;
  #lastMs = 0;
  #count = 0;

  constructor(rule: FlatLineRule, maxDetails: number) {
    this.#rule = rule;
    this.found = new Listed(maxDetails);
  }

  add(atMs: number, value: number): void {
    if (value !== this.#value) {
      this.finish();
      this.#value = value;
      this.#fromMs = atMs;
      this.#count = 0;
    }
    this.#lastMs = atMs;
    this.#count += 1;
  }

  finish(): void {
    const { points, lengthMs, zeros } = this.#rule;
    const isFlat = this.#count >= points && this.#lastMs - this.#fromMs >= lengthMs && (zeros || this.#value !== 0);
    if (!isFlat) return;
    this.points += this.#count;
    this.found.add(() => ({
      fromMs: this.#fromMs,
      lastMs: this.#lastMs,
      points: this.#count,
      value: this.#value,
    }));
  }
}

export interface Negative {
  readonly atMs: number;
  readonly value: number;
  /** Of a counter; else null. */
  readonly before: number | null;
}

/** Ids of the quantity types. */
const INTEGRATED = 2;
export const CUMULATIVE = 3;

/** Null: values of this quantity may be negative. */
export function negativesOf(quantityType: number | null, maxDetails: number) {
  if (quantityType !== INTEGRATED && quantityType !== CUMULATIVE) return null;
  const found = new Listed<Negative>(maxDetails);
  let before: number | null = null;
  return {
    found,
    add(atMs: number, value: number): void {
      if (quantityType === INTEGRATED && value < 0) found.add(() => ({ atMs, value, before: null }));
      const earlier = before;
      if (quantityType === CUMULATIVE && earlier !== null && value < earlier)
        found.add(() => ({ atMs, value, before: earlier }));
      before = value;
    },
  };
}

export interface OffGrid {
  readonly atMs: number;
  readonly deviationMs: number;
}

/** Clocks of devices are a little off; a tenth of a short step is more than that. */
const OFF_MS = 1_000;
const OFF_SHARE = 0.1;

/** Points beside the expected dates, and beyond the first of a step. */
export class Placement {
  readonly off: Listed<OffGrid>;
  crowded = 0;
  readonly #grid: Grid;
  readonly #toleranceMs: number;
  #slot = Number.NaN;

  constructor(grid: Grid, maxDetails: number) {
    this.#grid = grid;
    this.#toleranceMs = Math.min(OFF_MS, (grid.stepMs ?? 0) * OFF_SHARE);
    this.off = new Listed(maxDetails);
  }

  /** Returns the slot of the point. */
  add(atMs: number): number {
    const slot = this.#grid.slotOf(atMs);
    if (slot === this.#slot) this.crowded += 1;
    this.#slot = slot;
    const deviationMs = this.#grid.deviationMs(atMs);
    if (deviationMs !== null && Math.abs(deviationMs) > this.#toleranceMs) this.off.add(() => ({ atMs, deviationMs }));
    return slot;
  }
}
