/** The order of names in which numbers are compared by their value. */

const names = new Intl.Collator("en", { numeric: true });

/** `2019-9.csv` before `2019-10.csv`. */
export function compareNames(one: string, other: string): number {
  return names.compare(one, other) || (one < other ? -1 : Number(one > other));
}
