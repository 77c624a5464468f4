/**
 * The source rows of a batch as they are stored. Most readings come from rows at one distance, be it 1 or the number of
 * series in a file, so a row index would else take a seventh of a segment.
 */

/** A row, or several at one distance. */
export type StoredRow = number | readonly [first: number, distance: number, count: number];

/** Fewer are shorter one by one. */
const COUNT_MIN = 4;

export function storedRows(rows: ArrayLike<number>): StoredRow[] {
  const stored: StoredRow[] = [];
  for (let at = 0; at < rows.length; ) {
    const first = rows[at] ?? 0;
    const distance = (rows[at + 1] ?? 0) - first;
    let end = at + 1;
    while (end < rows.length && (rows[end] ?? 0) - (rows[end - 1] ?? 0) === distance) end += 1;
    const isRange = end - at >= COUNT_MIN;
    stored.push(isRange ? [first, distance, end - at] : first);
    at = isRange ? end : at + 1;
  }
  return stored;
}

/** At most so many rows: more are no longer those that were written. None of a list that is damaged. */
export function rowsFrom(stored: unknown, max: number): number[] {
  const rows: number[] = [];
  if (!Array.isArray(stored) || !stored.every(isStoredRow)) return rows;
  for (const one of stored) {
    const [first, distance, count] = typeof one === "number" ? ([one, 0, 1] as const) : one;
    for (let nth = 0; nth < count && rows.length < max; nth += 1) rows.push(first + nth * distance);
  }
  return rows;
}

function isStoredRow(one: unknown): one is StoredRow {
  return typeof one === "number" || (Array.isArray(one) && one.length === 3 && one.every(Number.isFinite));
}
