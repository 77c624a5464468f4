/** Participants prepare concurrently, and then take turns in the order in which they entered. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /**
   * `mine` resolves when all earlier participants have passed. Each participant must call `pass`, whatever happens; a
   * second call has no effect.
   */
  enter(): Turn {
    const mine = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = mine.then(() => promise);
    return { mine, pass: resolve };
  }
}

export interface Turn {
  readonly mine: Promise<void>;
  pass(): void;
}
