/** Returns a number with its thousands apart, such as `12,345`. */
export function grouped(number: number): string {
  return number.toLocaleString("en");
}

/** `target` of one, `targets` of any other number. */
export function noun(count: number, one: string, more = `${one}s`): string {
  return count === 1 ? one : more;
}

/** `1 target`, `0 targets`. */
export function counted(count: number, one: string, more?: string): string {
  return `${count} ${noun(count, one, more)}`;
}
