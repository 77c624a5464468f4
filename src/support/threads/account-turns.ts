/**
 * Work of several accounts on a few places: an account has one piece of work in a place at a time, and the accounts
 * that wait take turns, so that the queue of one is never before the first of another.
 */
export class AccountTurns {
  readonly #waiting = new Map<number, (() => void)[]>();
  readonly #working = new Set<number>();
  readonly #places: number;

  constructor(places: number) {
    this.#places = places;
  }

  async run<Result>(accountId: number, work: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((begin) => {
      this.#waiting.getOrInsertComputed(accountId, () => []).push(begin);
      this.#next();
    });
    try {
      return await work();
    } finally {
      this.#working.delete(accountId);
      // Behind the others.
      const rest = this.#waiting.get(accountId);
      if (rest !== undefined && this.#waiting.delete(accountId)) this.#waiting.set(accountId, rest);
      this.#next();
    }
  }

  #next(): void {
    for (const [accountId, list] of this.#waiting) {
      if (this.#working.size >= this.#places) return;
      if (this.#working.has(accountId)) continue;
      const begin = list.shift();
      if (list.length === 0) this.#waiting.delete(accountId);
      this.#working.add(accountId);
      begin?.();
    }
  }
}
