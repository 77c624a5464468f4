/** CSV by csv-parse, in chunks. Rows know their line in the file, also after quoted line breaks, comments and blank lines. */
import { CsvError, type Options, Parser } from "csv-parse";
import { stampPlace } from "../place.ts";
import type { RowFault } from "../rejections.ts";
import { UnreadableError } from "../row-error.ts";
import type { CsvOptions } from "./contract.ts";
import { type Input, utf8Chunks } from "./decode.ts";

/** Parsed at a time: so few rows that they are still young when they are done with, which spares the collector of garbage much work. */
const PIECE_BYTES = 16 * 1024;

import { ROW_BYTES_MAX } from "./limits.ts";
import type { RefuseRow } from "./refuse.ts";

/** Collects records as the parser finds them, and counts lines. */
class RecordCollector extends Parser {
  cells: string[][] = [];
  /** First line of each record. */
  lines: number[] = [];
  #nextLine: number;
  #skipped = 0;

  constructor(options: Options, firstLine: number) {
    super(options);
    this.#nextLine = firstLine;
  }

  override push(record: unknown): boolean {
    if (!Array.isArray(record)) return true;
    const { empty_lines, comment_lines } = this.info;
    const skipped = empty_lines + comment_lines;
    const line = this.#nextLine + skipped - this.#skipped;
    this.#skipped = skipped;
    // csv-parse counts a quoted CRLF twice, so line breaks inside cells are counted here, where there are any.
    this.#nextLine = line + 1 + breaksInside(record);
    this.cells.push(record);
    this.lines.push(line);
    return true;
  }

  /** Parses more bytes at once, without the buffers of a stream; null is the end. */
  consume(chunk: Buffer | null): void {
    let fault: Error | null | undefined;
    const done = (error?: Error | null) => {
      fault = error;
    };
    if (chunk === null) this._flush(done);
    else this._transform(chunk, "utf8", done);
    if (fault)
      throw unreadable(
        fault,
        this.#nextLine + this.info.empty_lines + this.info.comment_lines - this.#skipped,
      );
  }

  drain(): { cells: string[][]; lines: number[] } {
    const { cells, lines } = this;
    this.cells = [];
    this.lines = [];
    return { cells, lines };
  }
}

function breaksInside(record: readonly string[]): number {
  let breaks = 0;
  for (const cell of record) {
    if (cell.includes("\n") || cell.includes("\r")) breaks += cell.match(/\r\n|\n|\r/g)?.length ?? 0;
  }
  return breaks;
}

function unreadable(fault: Error, row: number): UnreadableError {
  const code = fault instanceof CsvError ? fault.code : undefined;
  if (code === "CSV_QUOTE_NOT_CLOSED" || code === "CSV_MAX_RECORD_SIZE")
    return new UnreadableError(`a quote that opens in the row at line ${row} is not closed`, {
      row,
      hint: "Close the quote, or declare `quote: null` if the file has no quoting.",
      cause: fault,
    });
  return new UnreadableError(`line ${row} is no valid CSV: ${fault.message}`, {
    row,
    hint: "A quote inside a quoted cell is written twice; declare `quote: null` if the file has no quoting.",
    cause: fault,
  });
}

/** Rows as arrays of cells, each stamped with its line. */
export async function* csvCells(input: Input, options: CsvOptions): AsyncGenerator<string[][]> {
  for await (const { cells, lines } of records(input, options)) {
    for (let index = 0; index < cells.length; index += 1) stampPlace(cells[index] ?? [], lines[index] ?? 0);
    if (cells.length > 0) yield cells;
  }
}

/** Rows by the names of the first row, which are trimmed; of columns with the same name the last counts. */
export async function* csvRows(
  input: Input,
  options: CsvOptions,
  refuse: RefuseRow,
): AsyncGenerator<Record<string, string>[]> {
  let header: string[] | undefined;
  for await (const { cells, lines } of records(input, options)) {
    const rows: Record<string, string>[] = [];
    for (let index = 0; index < cells.length; index += 1) {
      const record = cells[index] ?? [];
      if (header === undefined) {
        header = record.map((name) => name.trim());
        continue;
      }
      const row = toRow(header, record);
      stampPlace(row, lines[index] ?? 0);
      if (record.length !== header.length && options.ragged !== "allow")
        refuse(row, raggedFault(record.length, header.length));
      else rows.push(row);
    }
    if (rows.length > 0) yield rows;
  }
}

function raggedFault(cells: number, expected: number): RowFault {
  return {
    message: `the row has ${cells} cells where the header has ${expected}`,
    hint:
      cells < expected
        ? "Cells are missing: was the file cut off here, or written only in part?"
        : "A cell that holds the delimiter has to be quoted; the setting of the mapper may also name another delimiter.",
  };
}

/** Without a prototype, so that a column may have any name. */
function Row(this: Record<string, string>): void {}
Row.prototype = Object.create(null);
const RowShape = Row as unknown as new () => Record<string, string>;

function toRow(header: readonly string[], record: readonly string[]): Record<string, string> {
  const row = new RowShape();
  for (let column = 0; column < header.length; column += 1) row[header[column] ?? ""] = record[column] ?? "";
  return row;
}

async function* records(
  input: Input,
  options: CsvOptions,
): AsyncGenerator<{ cells: string[][]; lines: number[] }> {
  const skipLines = options.skipLines ?? 0;
  let collector: RecordCollector | undefined;
  for await (const chunk of skipping(utf8Chunks(input, options.encoding), skipLines)) {
    collector ??= new RecordCollector(parserOptions(options, chunk), skipLines + 1);
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      collector.consume(chunk.subarray(at, at + PIECE_BYTES));
      yield collector.drain();
    }
  }
  if (collector === undefined) return;
  collector.consume(null);
  yield collector.drain();
}

function parserOptions(options: CsvOptions, first: Buffer): Options {
  const quote = options.quote === undefined ? '"' : options.quote;
  // Old Macintosh line ends only when there are no others, so that a stray CR in a cell breaks no row.
  const delimiters = first.includes(10) || !first.includes(13) ? ["\r\n", "\n"] : ["\r"];
  return {
    delimiter: options.delimiter ?? ",",
    quote,
    escape: quote ?? null,
    comment: options.comment ?? null,
    comment_no_infix: true,
    record_delimiter: delimiters,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: ROW_BYTES_MAX,
  };
}

/** Leaves out the first lines, whatever quotes they hold. */
async function* skipping(chunks: AsyncIterable<Buffer>, lines: number): AsyncGenerator<Buffer> {
  let left = lines;
  let afterReturn = false;
  for await (const chunk of chunks) {
    let at = 0;
    while (at < chunk.length && (left > 0 || (afterReturn && chunk[at] === 10))) {
      const byte = chunk[at];
      if (byte === 13 || (byte === 10 && !afterReturn)) left -= 1;
      afterReturn = byte === 13;
      at += 1;
    }
    if (at < chunk.length) {
      afterReturn = false;
      yield chunk.subarray(at);
    }
  }
}
