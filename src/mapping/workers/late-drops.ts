/**
 * Drops of which a file or a list ran to the limit of its time. That ends the process, with what it maps for other
 * drops: so for a while, files of such a drop are mapped each in a process of its own.
 */
export class LateDrops {
  readonly #forMs: number;
  readonly #sinceMs = new Map<string, number>();

  /** `forMs`: since the last one that ran to its limit; with 0 no drop is set apart. */
  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  note(drop: string): void {
    this.#sinceMs.set(drop, performance.now());
  }

  has(drop: string): boolean {
    return performance.now() - (this.#sinceMs.get(drop) ?? Number.NEGATIVE_INFINITY) < this.#forMs;
  }
}
