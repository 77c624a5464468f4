/** Numbers read from the bytes of a cell, where they are short decimals. */

/** Such a whole number is exact as a double, and so is its quotient by a power of ten rounded as its text would be. */
const DIGITS_MAX = 15;
const POWERS = Float64Array.from({ length: DIGITS_MAX + 1 }, (_, places) => 10 ** places);
const MINUS = 45;

/**
 * The number between two places: digits, with a decimal mark and further digits if there are any. NaN for a cell that
 * is not of this kind: it may still be a number.
 */
export function byteNumber(bytes: Uint8Array, from: number, to: number, mark: number): number {
  const isNegative = from < to && bytes[from] === MINUS;
  const first = isNegative ? from + 1 : from;
  let whole = 0;
  let marked = -1;
  for (let at = first; at < to; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte >= 48 && byte <= 57) whole = whole * 10 + (byte - 48);
    else if (byte === mark && marked === -1 && at > first) marked = at;
    else return Number.NaN;
  }
  const digits = to - first - (marked === -1 ? 0 : 1);
  if (digits < 1 || digits > DIGITS_MAX || marked === to - 1) return Number.NaN;
  const value = marked === -1 ? whole : whole / (POWERS[to - 1 - marked] ?? 1);
  return isNegative ? -value : value;
}
