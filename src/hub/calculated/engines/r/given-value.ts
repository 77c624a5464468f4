/**
 * Reads the values that a script's process answers. They can be any bytes, so nothing is built from them before its
 * size is known: lists have the few items of the prelude, and texts stay bytes until the reader asks for them.
 */
import { TYPES } from "./values.ts";

export type GivenValue =
  | null
  | { readonly type: "double"; readonly data: Float64Array }
  | { readonly type: "integer" | "logical"; readonly data: Int32Array }
  | { readonly type: "character"; readonly texts: Texts }
  | { readonly type: "list"; readonly items: ReadonlyMap<string, GivenValue> };

/** A character vector of R that is still bytes. */
export class Texts {
  readonly #sizes: Int32Array;
  readonly #bytes: Buffer;

  constructor(sizes: Int32Array, bytes: Buffer) {
    this.#sizes = sizes;
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#sizes.length;
  }

  /** The first `count`, of each the first `bytesMax` bytes; NA is "". */
  first(count: number, bytesMax: number): readonly string[] {
    let at = 0;
    return Array.from(this.#sizes.subarray(0, count), (size) => {
      const from = at;
      at += Math.max(size, 0);
      return this.#bytes.toString("utf8", from, Math.min(at, from + bytesMax));
    });
  }

  /** Each in turn; null where R has NA. */
  *[Symbol.iterator](): Generator<string | null, undefined> {
    let at = 0;
    for (const size of this.#sizes) {
      const from = at;
      at += Math.max(size, 0);
      yield size < 0 ? null : this.#bytes.toString("utf8", from, at);
    }
    return undefined;
  }
}

/** Bytes that are no value of the prelude. */
class NoValueError extends Error {}

/** The prelude writes fewer of each. */
const DEPTH_MAX = 8;
const ITEMS_MAX = 8;
const VALUES_MAX = 64;
const NAME_BYTES_MAX = 64;

export function givenValue(bytes: Buffer): GivenValue {
  const reader = new ValueReader(bytes);
  const value = reader.value(0);
  if (!reader.isAtEnd()) throw new NoValueError("more bytes than one value");
  return value;
}

class ValueReader {
  readonly #bytes: Buffer;
  #at = 0;
  #values = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  value(depth: number): GivenValue {
    this.#values += 1;
    if (depth > DEPTH_MAX || this.#values > VALUES_MAX) throw new NoValueError("more lists than the prelude writes");
    const type = this.#take(1)[0];
    if (type === TYPES.null) return null;
    if (type === TYPES.double) return { type: "double", data: new Float64Array(this.#copy(this.#count(8), 8)) };
    if (type === TYPES.integer) return { type: "integer", data: this.#integers() };
    if (type === TYPES.logical) return { type: "logical", data: this.#integers() };
    if (type === TYPES.character) return { type: "character", texts: this.#texts() };
    if (type === TYPES.list) return { type: "list", items: this.#items(depth) };
    throw new NoValueError(`unknown type ${type}`);
  }

  #items(depth: number): ReadonlyMap<string, GivenValue> {
    const names = this.#texts();
    if (names.length > ITEMS_MAX) throw new NoValueError("a list with more items than the prelude writes");
    return new Map(names.first(ITEMS_MAX, NAME_BYTES_MAX).map((name) => [name, this.value(depth + 1)]));
  }

  #integers(): Int32Array {
    return new Int32Array(this.#copy(this.#count(4), 4));
  }

  #texts(): Texts {
    const sizes = this.#integers();
    let total = 0;
    for (const size of sizes) total += Math.max(size, 0);
    return new Texts(sizes, this.#take(total));
  }

  /** A number of elements of `width` bytes each, which are all there. */
  #count(width: number): number {
    const count = this.#take(4).readInt32LE();
    if (count < 0 || count * width > this.#bytes.length - this.#at)
      throw new NoValueError("a length is beyond the end");
    return count;
  }

  #copy(count: number, width: number): ArrayBuffer {
    return Uint8Array.from(this.#take(count * width)).buffer;
  }

  #take(size: number): Buffer {
    const end = this.#at + size;
    if (end > this.#bytes.length) throw new NoValueError("the bytes end early");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
