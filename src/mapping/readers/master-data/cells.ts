/** Reads cells of CSV files and workbooks. A cell that a spreadsheet may have changed is refused, and never guessed. */
import type { CellValue } from "../contract.ts";
import { hasTypedDigits } from "../typed-digits.ts";

export type Cell = CellValue;

/** Reads a cell that is not empty; throws a `RangeError` whose message completes "the cell …". */
export type ReadCell = (cell: Cell) => unknown;

const TEXT_MAX = 4_000;
/** Results of formulas that are none. */
const NO_RESULT = /^#(N\/A|REF!|VALUE!|NAME\?|DIV\/0!|NULL!|NUM!|SPILL!|CALC!|FIELD!|GETTING_DATA|NOT CALCULATED)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds them
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

export function isEmpty(cell: Cell | undefined): boolean {
  return cell === null || cell === undefined || (typeof cell === "string" && cell.trim() === "");
}

export function text(cell: Cell): string {
  if (typeof cell === "number") {
    if (hasTypedDigits(cell)) return String(cell);
    throw new RangeError(`is the number ${cell}, whose digits the spreadsheet may have changed: format it as text`);
  }
  if (typeof cell === "boolean") return String(cell);
  if (typeof cell === "object" && cell !== null)
    throw new RangeError(`is the date ${cell.local}, and not a text: format it as text, and enter it again`);
  const words = (cell ?? "").trim();
  if (NO_RESULT.test(words)) throw new RangeError(`is a formula without a result (${words})`);
  if (words.length > TEXT_MAX) throw new RangeError(`is longer than ${TEXT_MAX} characters`);
  if (CONTROL.test(words) || !words.isWellFormed()) throw new RangeError("has a character that is not text");
  return words;
}

export function whole(cell: Cell): number {
  const words = text(cell);
  const number = Number(words);
  if (!/^\d+$/.test(words) || !Number.isSafeInteger(number))
    throw new RangeError(`is "${words}", and not a whole number`);
  return number;
}

export function decimal(cell: Cell): number {
  if (typeof cell === "number" && cell !== 0) return cell;
  const words = text(cell);
  const number = Number(words);
  if (!/^-?\d+(\.\d+)?(e-?\d+)?$/i.test(words) || !Number.isFinite(number) || number === 0)
    throw new RangeError(`is "${words}", and not a number with a decimal point other than 0`);
  return number;
}

export function truth(cell: Cell): boolean {
  const word = text(cell).toLowerCase();
  if (["true", "yes", "1"].includes(word)) return true;
  if (["false", "no", "0"].includes(word)) return false;
  throw new RangeError(`is "${word}", and neither true nor false`);
}
