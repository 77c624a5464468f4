/** Returns a number with its thousands apart, such as `12,345`. */
export function grouped(number: number): string {
  return number.toLocaleString("en");
}
