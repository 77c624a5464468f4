/** From here on a spreadsheet has replaced the last digits of a number by zeros, without a trace. */
const DIGITS_LOST_FROM = 1e15;

/** Whether a number in a cell certainly has the digits that were typed: a whole one that is not too large. */
export function hasTypedDigits(number: number): boolean {
  return Number.isInteger(number) && Math.abs(number) < DIGITS_LOST_FROM;
}
