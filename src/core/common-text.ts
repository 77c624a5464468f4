/** Quoted texts, ids, numbers and times, which differ from file to file. */
const VARIABLE_PARTS = /"[^"]*"|'[^']*'|`[^`]*`|\b[0-9a-z]{26}(?:[0-9a-z]{7})*\b|\d[\w.,:+-]*/g;

/** The text with `…` for those parts: equal for faults with the same cause. */
export function commonText(text: string): string {
  return text.replaceAll(VARIABLE_PARTS, "…");
}
