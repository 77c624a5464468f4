/** Texts for people: their order, and how numbers and places are shown. */

const names = new Intl.Collator("en", { numeric: true });

/** Quoted texts, ids, numbers and times, which differ from file to file. */
const VARIABLE_PARTS = /"[^"]*"|'[^']*'|`[^`]*`|\b[0-9a-z]{26}(?:[0-9a-z]{7})*\b|\d[\w.,:+-]*/g;

/** The text with `…` for those parts: equal for faults with the same cause. */
export function commonText(text: string): string {
  return text.replaceAll(VARIABLE_PARTS, "…");
}

// The order of names in which numbers are compared by their value.

/** `2019-9.csv` before `2019-10.csv`. */
export function compareNames(one: string, other: string): number {
  return names.compare(one, other) || (one < other ? -1 : Number(one > other));
}

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

interface Place {
  readonly sheet?: string | undefined;
  readonly row?: number | undefined;
  readonly column?: string | undefined;
  readonly text?: string | undefined;
}

/** `sheet Export, row 42, column value`, between `before` and `after`; empty when no place is known. */
export function placeWords(place: Place | undefined, before = "", after = ": "): string {
  const { sheet, row, column } = place ?? {};
  const words = Object.entries({ sheet, row, column }).filter(([, value]) => value !== undefined);
  const texts = words.map(([kind, value]) => (kind === "column" ? columnWords(String(value)) : `${kind} ${value}`));
  return words.length === 0 ? "" : `${before}${texts.join(", ")}${after}`;
}

/** `column value`; a column without a name is called `column 3` already. */
export function columnWords(column: string): string {
  return /^column \d/.test(column) ? column : `column ${column}`;
}

/** ` (found "1,5")`, unless the message has it already. */
export function foundWords(message: string, place: Place | undefined): string {
  const text = place?.text;
  return text === undefined || message.includes(text) ? "" : ` (found ${JSON.stringify(text)})`;
}

// Texts that may be malformed.

/** The value of a JSON text; undefined when the text is not JSON, such as one that a power cut has torn. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/** The text that percent encoding stands for; a malformed one is returned as it is. */
export function uriDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}
