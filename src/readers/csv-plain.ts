/**
 * Splits a short CSV file without quotes, comments and blank lines at line ends and delimiters. Most small
 * files are like that, and the parser would take a tenth of the time that such a file costs in total.
 */
import type { CsvOptions } from "./contract.ts";
import { ROW_BYTES_MAX } from "./limits.ts";

const LF = 10;
const CR = 13;

/** Returns null when the bytes contain a quote, a comment, a blank line or another case for the parser. */
export function plainRecords(bytes: Buffer, options: CsvOptions): string[][] | null {
  const { delimiter = ",", quote = '"', comment, trim = false, rowBytesMax = ROW_BYTES_MAX } = options;
  if (comment !== undefined || trim || delimiter === "") return null;
  // A row cannot be longer than a file within the limit.
  if (bytes.length > rowBytesMax) return null;
  if (quote !== null && bytes.includes(quote)) return null;
  if (hasLoneCarriageReturn(bytes)) return null;
  const lines = bytes.toString("utf8").split(bytes.includes(CR) ? /\r?\n/ : "\n");
  // Nothing begins after a line feed at the end.
  if (lines.at(-1) === "") lines.pop();
  return lines.includes("") ? null : lines.map((line) => line.split(delimiter));
}

/** Whether a CR stands alone, without the LF of a line end. */
export function hasLoneCarriageReturn(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1)) if (bytes[at + 1] !== LF) return true;
  return false;
}
