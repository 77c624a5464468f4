/**
 * Has what comes in one turn of the event loop, or while the list before is performed, performed as one list. Lists are
 * performed one after the other, in the order in which their items came.
 */
import type { Settled } from "./promises.ts";

interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(thrown: unknown): void;
}

export class Collector<Item, Result> {
  readonly #perform: (list: readonly Item[]) => Promise<readonly Settled<Result>[]>;
  readonly #max: number;
  readonly #pauseMs: () => number;
  #waiting: Waiting<Item, Result>[] = [];
  #running: Promise<void> | null = null;

  /**
   * `perform` answers for each item of a list of at most `max`; what it throws is the answer for each of them. A list
   * begins after the milliseconds of `pauseMs`, unless it is full already.
   */
  constructor(
    perform: (list: readonly Item[]) => Promise<readonly Settled<Result>[]>,
    max: number,
    pauseMs: () => number = () => 0,
  ) {
    this.#perform = perform;
    this.#max = max;
    this.#pauseMs = pauseMs;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Once nothing waits. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const pauseMs = this.#waiting.length < this.#max ? this.#pauseMs() : 0;
      await new Promise<void>((resolve) => void (pauseMs > 0 ? setTimeout(resolve, pauseMs) : setImmediate(resolve)));
      const list = this.#waiting.slice(0, this.#max);
      this.#waiting = this.#waiting.slice(this.#max);
      await this.#settle(list);
    }
    this.#running = null;
  }

  async #settle(list: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#perform(list.map(({ item }) => item));
      for (const [at, { resolve, reject }] of list.entries()) {
        const result = results[at];
        if (result?.status === "fulfilled") resolve(result.value);
        else reject(result?.reason ?? new Error("an item of a list has no result"));
      }
    } catch (thrown) {
      for (const { reject } of list) reject(thrown);
    }
  }
}
