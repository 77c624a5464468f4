/** The runs that the spool had no space for, in the order in which they asked first. */

/** A run that did not ask again for this time no longer waits: a waiting run asks more often by itself. */
const ABANDONED_MS = 10_000;

export class WaitingRuns {
  /** The bytes that each needs, and when it asked last. */
  readonly #runs = new Map<string, { readonly need: number; readonly askedMs: number }>();

  get size(): number {
    return this.#runs.size;
  }

  add(id: string, need: number, askedMs: number): void {
    this.#runs.set(id, { need, askedMs });
  }

  delete(id: string): void {
    this.#runs.delete(id);
  }

  clear(): void {
    this.#runs.clear();
  }

  /**
   * Removes and returns as many runs as may fit into `freeBytes`, first come first served: each of them asks
   * again, and others may have asked meanwhile. An empty spool takes the first one whatever its size.
   */
  takeFitting(freeBytes: number, isEmpty: boolean, nowMs: number): readonly string[] {
    let left = freeBytes;
    const fitting: string[] = [];
    for (const [id, { need, askedMs }] of this.#runs) {
      if (nowMs <= askedMs + ABANDONED_MS) {
        left -= need;
        if (left < 0 && !(isEmpty && fitting.length === 0)) break;
        fitting.push(id);
      }
      this.#runs.delete(id);
    }
    return fitting;
  }
}
