/**
 * Whole lines of CSV without quotes, comments and stray line ends, which need no parser: a line is a row, and each
 * delimiter ends a cell. Most files are like that, and a parser would take half of the time that mapping them costs.
 */
import type { CsvOptions } from "./contract.ts";
import type { Records } from "./csv-block.ts";
import { ROW_BYTES_MAX } from "./limits.ts";

const LF = 10;
const CR = 13;

/** Some whole lines; only the last of a file may lack its line end. Blank lines are no rows. */
export class PlainLines {
  readonly bytes: Buffer;
  readonly delimiter: string;
  /** Line at which the bytes begin. */
  readonly line: number;
  /** Line after the last one, once all were read: set by the code that reads them. */
  nextLine: number;

  constructor(bytes: Buffer, delimiter: string, line: number) {
    this.bytes = bytes;
    this.delimiter = delimiter;
    this.line = line;
    this.nextLine = line;
  }

  /**
   * Cells of the line between two places, its end left out. Each line is a text of its own: its cells would otherwise
   * keep the whole block in memory.
   */
  cells(from: number, to: number): string[] {
    return this.bytes.toString("utf8", from, to).split(this.delimiter);
  }

  /** All rows. */
  records(): Records {
    const { bytes } = this;
    const cells: string[][] = [];
    const lines: number[] = [];
    let { line } = this;
    for (let from = 0; from < bytes.length; line += 1) {
      const found = bytes.indexOf(LF, from);
      const end = found === -1 ? bytes.length : found;
      const to = lineEnd(bytes, from, end);
      if (to > from) {
        cells.push(this.cells(from, to));
        lines.push(line);
      }
      from = end + 1;
    }
    this.nextLine = line;
    return { cells, lines };
  }
}

/** The end of a line without the CR before its LF. */
function lineEnd(bytes: Uint8Array, from: number, end: number): number {
  return end > from && bytes[end - 1] === CR ? end - 1 : end;
}

/** A test for blocks of lines that end with LF or CRLF: whether they are plain, by the options of the reader. */
export function plainTest(options: CsvOptions): (block: Buffer) => boolean {
  const { delimiter = ",", quote = '"', comment, trim = false, rowBytesMax = ROW_BYTES_MAX } = options;
  if (trim || delimiter === "" || /[\r\n]/.test(delimiter)) return () => false;
  return (block) =>
    // A row cannot be longer than a block within the limit.
    block.length <= rowBytesMax &&
    (quote === null || !block.includes(quote)) &&
    (comment === undefined || !block.includes(comment)) &&
    !hasLoneCarriageReturn(block);
}

/** Whether a CR stands alone, without the LF of a line end. */
export function hasLoneCarriageReturn(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1)) if (bytes[at + 1] !== LF) return true;
  return false;
}
