/**
 * Records of a short CSV file of which each line is a record, parsed at once and without a stream: most small files are like that, and
 * for them the way of `csv-records.ts` costs as much again as the parsing.
 */
import type { Options } from "csv-parse";
import { parse } from "csv-parse/sync";
import type { CsvOptions } from "./contract.ts";
import { type Input, smallUtf8 } from "./decode.ts";
import { ROW_BYTES_MAX } from "./limits.ts";

const LF = 10;
const CR = 13;

/** Null of whatever is longer or otherwise, or has a fault: that way counts lines through quotes and comments, and tells what is wrong. */
export function plainRecords(input: Input, options: CsvOptions, bytesMax: number): string[][] | null {
  const { skipLines = 0, headerAt, rowBytesMax = ROW_BYTES_MAX } = options;
  if (skipLines !== 0 || headerAt !== undefined) return null;
  const bytes = smallUtf8(input, options.encoding);
  // Within its limit no row can be too long.
  if (bytes === null || bytes.length > Math.min(bytesMax, rowBytesMax)) return null;
  const lines = countLines(bytes);
  if (lines === null) return null;
  const records = recordsOf(bytes, options);
  // Fewer when a line was blank or a comment, or broken within quotes.
  return records?.length === lines ? records : null;
}

function recordsOf(bytes: Buffer, options: CsvOptions): string[][] | null {
  const parsing = optionsFor(bytes, options);
  const { quote, comment, trim, delimiter } = parsing;
  if (quote === null && comment === null && !trim && delimiter !== "") return split(bytes, options);
  try {
    return parse(bytes, parsing);
  } catch {
    // The other way finds the same fault, and its place.
    return null;
  }
}

/** Where nothing is quoted, trimmed or left out, nothing is left to parse, and the parser would take a tenth of all that a small file takes. */
function split(bytes: Buffer, { delimiter = "," }: CsvOptions): string[][] {
  const lines = bytes.toString("utf8").split(bytes.includes(CR) ? /\r?\n/ : "\n");
  // Behind a line feed at the end nothing begins.
  if (lines.at(-1) === "") lines.pop();
  return lines.filter((line) => line !== "").map((line) => line.split(delimiter));
}

/** Null when a CR ends a line, or stands in it. */
function countLines(bytes: Buffer): number | null {
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1))
    if (bytes[at + 1] !== LF) return null;
  let lines = bytes.at(-1) === LF ? 0 : 1;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) lines += 1;
  return lines;
}

/** Those of the other way, without what the parser would look for in vain at each byte. */
function optionsFor(bytes: Buffer, options: CsvOptions): Options {
  const quote = options.quote === undefined ? '"' : options.quote;
  const quoting = quote !== null && bytes.includes(quote);
  return {
    delimiter: options.delimiter ?? ",",
    quote: quoting ? quote : null,
    escape: quoting ? (options.escape ?? quote) : null,
    comment: options.comment ?? null,
    comment_no_infix: true,
    record_delimiter: bytes.includes(CR) ? ["\r\n", "\n"] : ["\n"],
    relax_column_count: true,
    skip_empty_lines: true,
    trim: options.trim === true,
  };
}
