/** Copies of small parts that live long: the part itself would keep the whole text or block in memory. */

/** V8 keeps a part of a longer text, such as a line of a listing, as a place within it. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}

/** The `slice` of a Buffer is a view of it. */
export function ownBytes(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bytes.subarray(from, to));
}
