/**
 * Memory that pieces of files pass through, lent and given back. A buffer made for each file outlives the young generation of the heap, and a
 * full collection comes late: with many files that is tens of megabytes of nothing.
 */
export class Chunks {
  readonly #bytes: number;
  readonly #keptMax: number;
  readonly #kept: Buffer[] = [];

  /** Of so many bytes each; at most `keptMax` are kept while nobody has them. */
  constructor(bytes: number, keptMax: number) {
    this.#bytes = bytes;
    this.#keptMax = keptMax;
  }

  /** Whatever `work` does with the chunk has ended when it settles. What is in the chunk before is of no meaning. */
  async lend<Value>(work: (chunk: Buffer) => Promise<Value>): Promise<Value> {
    const chunk = this.#kept.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
    try {
      return await work(chunk);
    } finally {
      if (this.#kept.length < this.#keptMax) this.#kept.push(chunk);
    }
  }
}
