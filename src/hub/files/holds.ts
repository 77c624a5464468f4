/** Which contents uploads of this process hold, and which it is removing: an upload waits for a removal of the same. */

export class Holds {
  /** Uploads whose record is not committed yet, by digest. */
  readonly #held = new Map<string, number>();
  readonly #removing = new Map<string, Promise<void>>();

  isHeld(sha256: string): boolean {
    return this.#held.has(sha256);
  }

  isRemoving(sha256: string): boolean {
    return this.#removing.has(sha256);
  }

  /** The function that it returns has an effect once. */
  hold(sha256: string): () => void {
    this.#held.set(sha256, (this.#held.get(sha256) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(sha256);
      isHeld = false;
    };
  }

  /** Resolves when a removal that has begun is over, however it ended. */
  async removed(sha256: string): Promise<void> {
    await this.#removing.get(sha256);
  }

  /** Runs after the removals of the same content that began before. */
  async remove(sha256: string, remove: () => Promise<void>): Promise<void> {
    if (this.#held.has(sha256)) return;
    const before = this.#removing.get(sha256);
    const removing = (async () => {
      await before;
      await remove();
    })();
    // An upload waits for the end, and not for the result.
    const ended = removing.catch(() => undefined);
    this.#removing.set(sha256, ended);
    try {
      await removing;
    } finally {
      if (this.#removing.get(sha256) === ended) this.#removing.delete(sha256);
    }
  }

  #release(sha256: string): void {
    const others = (this.#held.get(sha256) ?? 1) - 1;
    if (others > 0) this.#held.set(sha256, others);
    else this.#held.delete(sha256);
  }
}
