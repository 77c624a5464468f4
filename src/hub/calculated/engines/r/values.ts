/**
 * Values of R as bytes, in both directions: the prelude (`prelude.ts`) reads and writes the same form. Numbers are
 * binary and strings UTF-8 with their lengths, so that nothing is parsed, quoted or rounded on the way.
 */

/** A value as R holds it. A string is null where R has NA. */
export type RValue =
  | null
  | { readonly type: "double"; readonly data: Float64Array }
  | { readonly type: "integer"; readonly data: Int32Array }
  | { readonly type: "logical"; readonly data: Int32Array }
  | { readonly type: "character"; readonly data: readonly (string | null)[] }
  | { readonly type: "list"; readonly names: readonly string[]; readonly items: readonly RValue[] };

/** NA of integers and logicals. */
export const NA_INTEGER = -(2 ** 31);
export const INTEGER_MAX = 2 ** 31 - 1;

const TAGS = { null: 0, double: 1, integer: 2, character: 3, list: 4, logical: 5 } as const;

export function doubles(data: ArrayLike<number>): RValue {
  return { type: "double", data: Float64Array.from(data) };
}

export function strings(data: readonly (string | null)[]): RValue {
  return { type: "character", data };
}

export function list(entries: readonly (readonly [string, RValue])[]): RValue {
  return { type: "list", names: entries.map(([name]) => name), items: entries.map(([, item]) => item) };
}

export function bytesOf(value: RValue): Buffer {
  const parts: Buffer[] = [];
  write(value, parts);
  return Buffer.concat(parts);
}

function write(value: RValue, parts: Buffer[]): void {
  parts.push(Buffer.of(value === null ? TAGS.null : TAGS[value.type]));
  if (value === null) return;
  if (value.type === "character") writeStrings(value.data, parts);
  else if (value.type === "list") {
    writeStrings(value.names, parts);
    for (const item of value.items) write(item, parts);
  } else parts.push(integer(value.data.length), view(value.data));
}

function writeStrings(texts: readonly (string | null)[], parts: Buffer[]): void {
  const sizes = new Int32Array(texts.length);
  const bodies = texts.map((text, index) => {
    // R has no string with the character 0.
    const body = Buffer.from((text ?? "").replaceAll("\0", "\uFFFD"));
    sizes[index] = text === null ? -1 : body.length;
    return body;
  });
  parts.push(integer(texts.length), view(sizes), ...bodies);
}

function integer(value: number): Buffer {
  return view(Int32Array.of(value));
}

/** Every machine that Node 26 runs on stores numbers with their least byte first, but one that is refused here. */
function view(data: Float64Array | Int32Array): Buffer {
  if (new Uint8Array(Int32Array.of(1).buffer)[0] !== 1)
    throw new Error("this machine's order of bytes is unknown to R");
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** Bytes that are no value of R; a script can produce any. */
export class NoValueError extends Error {}

/** Lists in lists that the prelude never writes deeper. */
const DEPTH_MAX = 8;

export function valueOfBytes(bytes: Buffer): RValue {
  const reader = new ValueReader(bytes);
  const value = reader.value(0);
  if (!reader.isAtEnd()) throw new NoValueError("more bytes than one value");
  return value;
}

class ValueReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  value(depth: number): RValue {
    if (depth > DEPTH_MAX) throw new NoValueError("lists are nested too deeply");
    const tag = this.#take(1)[0];
    if (tag === TAGS.null) return null;
    if (tag === TAGS.double) return { type: "double", data: new Float64Array(this.#copy(this.#count(8), 8)) };
    if (tag === TAGS.integer) return { type: "integer", data: this.#integers() };
    if (tag === TAGS.logical) return { type: "logical", data: this.#integers() };
    if (tag === TAGS.character) return { type: "character", data: this.#strings() };
    if (tag !== TAGS.list) throw new NoValueError(`unknown type ${tag}`);
    const names = this.#strings().map((name) => name ?? "");
    return { type: "list", names, items: names.map(() => this.value(depth + 1)) };
  }

  #integers(): Int32Array {
    return new Int32Array(this.#copy(this.#count(4), 4));
  }

  #strings(): (string | null)[] {
    const sizes = this.#integers();
    return Array.from(sizes, (size) => (size < 0 ? null : this.#take(size).toString("utf8")));
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
