/** A set of whole numbers as bits, in pages: a dense set takes little memory, and numbers far apart take no more. */
export class BitSet {
  readonly #pages = new Map<number, Uint32Array>();

  add(id: number): void {
    const number = Math.floor(id / 32_768);
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = new Uint32Array(1024);
      this.#pages.set(number, page);
    }
    const bit = id % 32_768;
    page[bit >>> 5] = (page[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }

  has(id: number): boolean {
    const bit = id % 32_768;
    const word = this.#pages.get(Math.floor(id / 32_768))?.[bit >>> 5] ?? 0;
    return (word & (1 << (bit & 31))) !== 0;
  }

  delete(id: number): void {
    const bit = id % 32_768;
    const page = this.#pages.get(Math.floor(id / 32_768));
    if (page !== undefined) page[bit >>> 5] = (page[bit >>> 5] ?? 0) & ~(1 << (bit & 31));
  }
}
