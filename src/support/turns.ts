/** Whoever enters may prepare side by side with the others, and then has its turn in the order of entering. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** `mine` resolves when all who entered before have passed. Whoever entered must pass, whatever happens; once more does no harm. */
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
