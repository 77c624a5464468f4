/**
 * Values of R as bytes: the prelude (`prelude.ts`) reads this form, and writes what `output.ts` reads. Numbers are
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

export const TYPES = { null: 0, double: 1, integer: 2, character: 3, list: 4, logical: 5 } as const;

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
  parts.push(Buffer.of(value === null ? TYPES.null : TYPES[value.type]));
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
