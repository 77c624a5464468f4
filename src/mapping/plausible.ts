/**
 * Dates outside this range are faults of clocks and of conversions: a zero in a spreadsheet is 1899, a missing year
 * 9999.
 */
const DATE_MIN_MS = Date.UTC(1901, 0, 1);
const DATE_MAX_MS = Date.UTC(2200, 0, 1);

/** Whether a reading may have this date, in epoch milliseconds. */
export function isPlausible(ms: number): boolean {
  return ms >= DATE_MIN_MS && ms < DATE_MAX_MS;
}
