/** Numbers in words. */

/** Decimals of a summary; values show more. */
export const SUMMARY_DIGITS = 3;
export const VALUE_DIGITS = 9;

/** By decimals; each takes long to make. */
const WRITERS = new Map<number, Intl.NumberFormat>();

export function numberWords(value: number | null | undefined, digits: number): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  const writer = WRITERS.get(digits) ?? new Intl.NumberFormat(undefined, { maximumFractionDigits: digits });
  WRITERS.set(digits, writer);
  return writer.format(value);
}
