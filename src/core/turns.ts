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

/**
 * Runs a limited number of tasks; the waiting ones of each caller in turn, so that a caller with many does not delay
 * the others.
 */
export class FairQueue<Caller> {
  readonly #most: number;
  readonly #ofOne: number;
  readonly #spare: number;
  readonly #waitingMax: number;
  /** In the order of their turns. */
  readonly #waiting = new Map<Caller, (() => void)[]>();
  readonly #running = new Map<Caller, number>();
  #count = { running: 0, waiting: 0 };

  /**
   * `most`: tasks at one time, of which one caller has at most `ofOne`; `spare`: further ones, each of a caller that
   * has no other; `waitingMax`: see `isFull`.
   */
  constructor(most: number, { ofOne = most, spare = 0, waitingMax = Number.POSITIVE_INFINITY } = {}) {
    this.#most = most;
    this.#ofOne = ofOne;
    this.#spare = spare;
    this.#waitingMax = waitingMax;
  }

  get isFull(): boolean {
    return this.#count.running >= this.#most && this.#count.waiting >= this.#waitingMax;
  }

  waitingOf(caller: Caller): number {
    return this.#waiting.get(caller)?.length ?? 0;
  }

  get isIdle(): boolean {
    return this.#count.running === 0;
  }

  /** Throws the reason of the signal when it is aborted before the turn. */
  async run<T>(caller: Caller, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#mayBegin(caller)) this.#begin(caller);
    else await this.#turn(caller, signal);
    try {
      return await work();
    } finally {
      this.#end(caller);
    }
  }

  #mayBegin(caller: Caller): boolean {
    const own = this.#running.get(caller) ?? 0;
    return this.#count.running < this.#most + (own === 0 ? this.#spare : 0) && own < this.#ofOne;
  }

  #begin(caller: Caller): void {
    this.#running.set(caller, (this.#running.get(caller) ?? 0) + 1);
    this.#count.running += 1;
  }

  #end(caller: Caller): void {
    const left = (this.#running.get(caller) ?? 1) - 1;
    if (left === 0) this.#running.delete(caller);
    else this.#running.set(caller, left);
    this.#count.running -= 1;
    this.#next();
  }

  #turn(caller: Caller, signal: AbortSignal | undefined): Promise<void> {
    const own = this.#waiting.getOrInsert(caller, []);
    this.#count.waiting += 1;
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      const abort = () => {
        own.splice(own.indexOf(begin), 1);
        if (own.length === 0) this.#waiting.delete(caller);
        this.#count.waiting -= 1;
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      own.push(begin);
    });
  }

  /** The one that had a turn comes last. */
  #next(): void {
    for (const [caller, own] of this.#waiting) {
      if (!this.#mayBegin(caller)) continue;
      const next = own.shift();
      this.#waiting.delete(caller);
      if (own.length > 0) this.#waiting.set(caller, own);
      this.#count.waiting -= 1;
      this.#begin(caller);
      next?.();
      return;
    }
  }
}

/** Others have their turn at the event loop. */
export function breath(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
