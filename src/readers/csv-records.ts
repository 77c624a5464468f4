/** Records of CSV (RFC 4180 and its dialects) by csv-parse, with the line at which each begins, also after quoted line breaks, comments and blank lines. */
import { CsvError, type Options, Parser } from "csv-parse";
import type { CsvOptions } from "./contract.ts";
import { plainRecords } from "./csv-plain.ts";
import { Preamble } from "./csv-preamble.ts";
import { type Input, utf8Chunks } from "./decode.ts";
import { ROW_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";

/** Parsed at a time: so few rows that they are still young when they are done with, which spares the collector of garbage much work. */
const PIECE_BYTES = 16 * 1024;

export interface Records {
  readonly cells: string[][];
  /** First line of each record. */
  readonly lines: number[];
}

export async function* csvRecords(input: Input, options: CsvOptions): AsyncGenerator<Records> {
  const plain = plainRecords(input, options, PIECE_BYTES);
  if (plain !== null) {
    yield { cells: plain, lines: plain.map((_, nth) => nth + 1) };
    return;
  }
  const preamble = new Preamble(options);
  let collector: RecordCollector | undefined;
  for await (const chunk of preamble.after(utf8Chunks(input, options.encoding))) {
    collector ??= new RecordCollector(options, chunk, preamble.line);
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      collector.consume(chunk.subarray(at, at + PIECE_BYTES));
      yield collector.drain();
    }
  }
  if (collector === undefined) return;
  collector.consume(null);
  yield collector.drain();
}

/** Collects records as the parser finds them, and counts lines. */
class RecordCollector extends Parser {
  #cells: string[][] = [];
  #lines: number[] = [];
  #nextLine: number;
  #skipped = 0;
  readonly #rowBytesMax: number;
  /** Bytes since a record or a skipped line was complete. */
  #openBytes = 0;
  #completed = 0;

  constructor(options: CsvOptions, first: Buffer, firstLine: number) {
    super(parserOptions(options, first));
    this.#rowBytesMax = options.rowBytesMax ?? ROW_BYTES_MAX;
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
    this.#cells.push(record);
    this.#lines.push(line);
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
    if (fault) throw unreadable(fault, this.#openLine, this.#rowBytesMax);
    this.#limitRow(chunk?.length ?? 0);
  }

  drain(): Records {
    const records = { cells: this.#cells, lines: this.#lines };
    this.#cells = [];
    this.#lines = [];
    return records;
  }

  get #openLine(): number {
    return this.#nextLine + this.info.empty_lines + this.info.comment_lines - this.#skipped;
  }

  /** The parser's own limit counts what is in cells, and not how many there are. */
  #limitRow(bytes: number): void {
    const { empty_lines, comment_lines } = this.info;
    const completed = this.#cells.length + empty_lines + comment_lines;
    this.#openBytes = completed === this.#completed ? this.#openBytes + bytes : bytes;
    this.#completed = empty_lines + comment_lines;
    if (this.#openBytes > this.#rowBytesMax + bytes) throw tooLong(this.#openLine, this.#rowBytesMax);
  }
}

function breaksInside(record: readonly string[]): number {
  let breaks = 0;
  for (const cell of record) {
    if (cell.includes("\n") || cell.includes("\r")) breaks += cell.match(/\r\n|\n|\r/g)?.length ?? 0;
  }
  return breaks;
}

function unreadable(fault: Error, row: number, rowBytesMax: number): UnreadableError {
  const code = fault instanceof CsvError ? fault.code : undefined;
  if (code === "CSV_MAX_RECORD_SIZE") return tooLong(row, rowBytesMax, fault);
  if (code === "CSV_QUOTE_NOT_CLOSED")
    return new UnreadableError(`a quote that opens in the row at line ${row} is not closed`, {
      row,
      hint: "Close the quote, or declare `quote: null` if the file has no quoting.",
      cause: fault,
    });
  return new UnreadableError(`line ${row} is no valid CSV: ${fault.message}`, {
    row,
    hint: "A quote inside a quoted cell is written twice. Has the file another delimiter than the mapper expects, or no quoting (declare `quote: null`)?",
    cause: fault,
  });
}

function tooLong(row: number, rowBytesMax: number, cause?: Error): UnreadableError {
  return new UnreadableError(`the row at line ${row} is longer than ${rowBytesMax} bytes`, {
    row,
    hint: "Is a quote in it not closed (declare `quote: null` if the file has no quoting), or is it no CSV at all? A mapper for longer rows raises `rowBytesMax`.",
    cause,
  });
}

function parserOptions(options: CsvOptions, first: Buffer): Options {
  const quote = options.quote === undefined ? '"' : options.quote;
  // Old Macintosh line ends only when there are no others, so that a stray CR in a cell breaks no row.
  const delimiters = first.includes(10) || !first.includes(13) ? ["\r\n", "\n"] : ["\r"];
  return {
    delimiter: options.delimiter ?? ",",
    quote,
    escape: options.escape ?? quote ?? null,
    comment: options.comment ?? null,
    comment_no_infix: true,
    record_delimiter: delimiters,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: options.rowBytesMax ?? ROW_BYTES_MAX,
    trim: options.trim === true,
  };
}
