/**
 * A pool of buffers that pieces of files pass through. A buffer allocated for each file outlives the young generation
 * of the heap, and a full collection comes late: with many files that wastes tens of megabytes.
 */
export class Chunks {
  readonly #bytes: number;
  readonly #keptMax: number;
  readonly #kept: Buffer[] = [];

  /** Each buffer has `bytes`; at most `keptMax` of them are kept while unused. */
  constructor(bytes: number, keptMax: number) {
    this.#bytes = bytes;
    this.#keptMax = keptMax;
  }

  /** `work` must not use the chunk after it settles. The initial content of the chunk is undefined. */
  async lend<Value>(work: (chunk: Buffer) => Promise<Value>): Promise<Value> {
    const chunk = this.take();
    try {
      return await work(chunk);
    } finally {
      this.giveBack(chunk);
    }
  }

  /** One that is not given back is left to the garbage collector. */
  take(): Buffer {
    return this.#kept.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
  }

  /** Of `take`: nothing may read or write it afterwards. */
  giveBack(chunk: Buffer): void {
    if (this.#kept.length < this.#keptMax) this.#kept.push(chunk);
  }
}
