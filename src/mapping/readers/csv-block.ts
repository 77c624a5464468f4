/**
 * Parses blocks of whole lines: plain ones as lines, others by csv-parse, of which it finds the line at which each
 * record begins, also after quoted line breaks, comments and blank lines.
 */
import { CsvError, type Info, type Options, parse } from "csv-parse/sync";
import type { CsvOptions, Line } from "./contract.ts";
import { ROW_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";

export interface Records {
  readonly cells: string[][];
  /** First line of each record. */
  readonly lines: number[];
}

export interface ParsedBlock {
  readonly rows: Records | PlainLines;
  /** Bytes up to the row that the block does not complete, or all. */
  readonly consumed: number;
}

/** Bytes of a comment that are handed on. */
const COMMENT_BYTES_MAX = 4096;

interface Comment {
  readonly line: Line;
  readonly isBehind: boolean;
}

const LF = 10;
const CR = 13;

export class BlockParser {
  /** A lone CR ends a line only when the file has no LF, so that a stray CR in a cell breaks no row. */
  readonly lineEnd: number;
  readonly #options: Options;
  readonly #quote: string | null;
  readonly #rowBytesMax: number;
  /** Line at which the next block begins. */
  #line: number;
  /** Line of the row that no block has completed yet. */
  #openLine: number;
  /**
   * Whether the file has blank lines, comments or line breaks inside cells; such a file mostly has many of
   * them.
   */
  #hasOtherLines = false;
  /** Whether a record came before; a header counts. */
  #hasRecords = false;
  readonly #comment: string | undefined;
  readonly #onComment: CsvOptions["onComment"];
  readonly #isPlain: (block: Buffer) => boolean;
  readonly #delimiter: string;
  /** The latest block, when its lines may not have been counted yet. */
  #plain: PlainLines | undefined;

  constructor(options: CsvOptions, first: Buffer, firstLine: number) {
    this.lineEnd = first.includes(LF) || !first.includes(CR) ? LF : CR;
    this.#quote = options.quote === undefined ? '"' : options.quote;
    this.#rowBytesMax = options.rowBytesMax ?? ROW_BYTES_MAX;
    this.#line = firstLine;
    this.#openLine = firstLine;
    this.#comment = options.comment;
    this.#onComment = options.onComment;
    this.#delimiter = options.delimiter ?? ",";
    this.#isPlain = this.lineEnd === LF ? plainTest(options) : () => false;
    this.#options = {
      delimiter: this.#delimiter,
      quote: this.#quote,
      escape: options.escape ?? this.#quote,
      comment: options.comment ?? null,
      comment_no_infix: true,
      record_delimiter: this.lineEnd === LF ? ["\r\n", "\n"] : ["\r"],
      relax_column_count: true,
      skip_empty_lines: true,
      trim: options.trim === true,
    };
  }

  /** Line at which the next block begins. */
  get line(): number {
    this.#countPlain();
    return this.#line;
  }

  /** With `isEnd`, the block is the last; otherwise it ends with a line, and may end within a quoted cell. */
  parse(block: Buffer, isEnd: boolean): ParsedBlock {
    this.#countPlain();
    if (this.#isPlain(block)) {
      this.#hasRecords = true;
      this.#plain = new PlainLines(block, this.#delimiter, this.#line);
      return { rows: this.#plain, consumed: block.length };
    }
    const simple = this.#hasOtherLines ? null : this.#parseLines(block);
    this.#hasOtherLines = simple === null;
    return simple ?? this.#parseRecords(block, isEnd);
  }

  #countPlain(): void {
    if (this.#plain === undefined) return;
    this.#line = this.#plain.nextLine;
    this.#openLine = this.#line;
    this.#plain = undefined;
  }

  /** Null when some line is not a record, or when there is a fault, which `#parseRecords` locates. */
  #parseLines(block: Buffer): ParsedBlock | null {
    if (this.lineEnd === LF ? hasLoneCarriageReturn(block) : block.includes(LF)) return null;
    let cells: string[][];
    try {
      cells = parse(block, this.#optionsFor(block));
    } catch {
      return null;
    }
    const ends = countOf(this.lineEnd, block, 0);
    const count = block.at(-1) === this.lineEnd ? ends : ends + 1;
    if (cells.length !== count) return null;
    const lines = cells.map((_, nth) => this.#line + nth);
    this.#hasRecords = true;
    this.#line += ends;
    this.#openLine = this.#line;
    return { rows: { cells, lines }, consumed: block.length };
  }

  #parseRecords(block: Buffer, isEnd: boolean): ParsedBlock {
    const cells: string[][] = [];
    const lines: number[] = [];
    const comments: Comment[] = [];
    let skipped = 0;
    let commented = 0;
    let consumed = 0;
    const onRecord = (record: string[], info: Info): null => {
      const skippedNow = info.empty_lines + info.comment_lines;
      const line = this.#line + skippedNow - skipped;
      if (info.comment_lines > commented) this.#addComments(comments, block, consumed, skippedNow - skipped);
      commented = info.comment_lines;
      this.#hasRecords = true;
      skipped = skippedNow;
      // csv-parse counts a quoted CRLF twice, so the line breaks inside cells are counted here.
      this.#line = line + 1 + breaksInside(record);
      consumed = info.bytes;
      cells.push(record);
      lines.push(line);
      return null;
    };
    try {
      parse(block, { ...this.#optionsFor(block), on_record: onRecord });
    } catch (fault) {
      if (!(fault instanceof CsvError)) throw fault;
      const { empty_lines, comment_lines } = fault as CsvError & Info;
      this.#openLine = this.#line + empty_lines + comment_lines - skipped;
      this.#reportComments(comments);
      if (fault.code === "CSV_QUOTE_NOT_CLOSED" && !isEnd) return { rows: { cells, lines }, consumed };
      throw this.#refusal(fault);
    }
    this.#addComments(comments, block, consumed, Number.POSITIVE_INFINITY);
    this.#reportComments(comments);
    this.#line += countOf(this.lineEnd, block, consumed);
    this.#openLine = this.#line;
    return { rows: { cells, lines }, consumed: block.length };
  }

  /** The comments among so many lines that are no records. */
  #addComments(comments: Comment[], block: Buffer, from: number, count: number): void {
    const comment = this.#comment;
    if (comment === undefined || this.#onComment === undefined) return;
    for (let [at, nth] = [from, 0]; nth < count && at < block.length; nth += 1) {
      const found = block.indexOf(this.lineEnd, at);
      const end = found === -1 ? block.length : found;
      const text = block.toString("utf8", at, Math.min(end, at + COMMENT_BYTES_MAX)).replace(/\r$/, "");
      if (text.startsWith(comment))
        comments.push({ line: { row: this.#line + nth, text }, isBehind: this.#hasRecords });
      at = end + 1;
    }
  }

  #reportComments(comments: readonly Comment[]): void {
    for (const { line, isBehind } of comments) this.#onComment?.(line, isBehind);
  }

  rowTooLong(): Error {
    this.#countPlain();
    return rowTooLong(this.#openLine, this.#rowBytesMax);
  }

  /**
   * Options without the features that the block does not use: the parser would check for each of them at
   * every byte.
   */
  #optionsFor(block: Buffer): Options {
    const isQuoted = this.#quote !== null && block.includes(this.#quote);
    return {
      ...this.#options,
      ...(isQuoted ? {} : { quote: null, escape: null }),
      ...(this.lineEnd === LF && !block.includes(CR) ? { record_delimiter: ["\n"] } : {}),
      ...(block.length > this.#rowBytesMax ? { max_record_size: this.#rowBytesMax } : {}),
    };
  }

  #refusal(fault: CsvError): Error {
    if (fault.code === "CSV_MAX_RECORD_SIZE") return rowTooLong(this.#openLine, this.#rowBytesMax, fault);
    if (fault.code === "CSV_QUOTE_NOT_CLOSED") return quoteNotClosed(this.#openLine, fault);
    return invalidCsv(fault, this.#openLine);
  }
}

function breaksInside(record: readonly string[]): number {
  let breaks = 0;
  for (const cell of record) {
    if (cell.includes("\n") || cell.includes("\r")) breaks += cell.match(/\r\n|\n|\r/g)?.length ?? 0;
  }
  return breaks;
}

function countOf(byte: number, bytes: Buffer, from: number): number {
  let count = 0;
  for (let at = bytes.indexOf(byte, from); at !== -1; at = bytes.indexOf(byte, at + 1)) count += 1;
  return count;
}

// Why the records of a CSV file cannot be read, with the line of the row.

/**
 * The parser counts lines from the start of its block, and a blank CRLF line twice; the line of the row
 * replaces its number.
 */
function invalidCsv(fault: Error, row: number): UnreadableError {
  const message = fault.message.replace(/ at line \d+/, ` at line ${row}`);
  return new UnreadableError(`line ${row} is not valid CSV: ${message}`, {
    row,
    hint:
      "A quote inside a quoted cell is written twice. Does the file use another delimiter than the mapper expects, " +
      "or no quoting (declare `quote: null`)?",
    cause: fault,
  });
}

function quoteNotClosed(row: number, cause: Error): UnreadableError {
  return new UnreadableError(`a quote that opens in the row at line ${row} is not closed`, {
    row,
    hint: "Close the quote, or declare `quote: null` if the file has no quoting.",
    cause,
  });
}

function rowTooLong(row: number, rowBytesMax: number, cause?: Error): UnreadableError {
  return new UnreadableError(`the row at line ${row} is longer than ${rowBytesMax} bytes`, {
    row,
    hint:
      "Is a quote in it not closed (declare `quote: null` if the file has no quoting), " +
      "or is the file not CSV at all? " +
      "A mapper for longer rows raises `rowBytesMax`.",
    cause,
  });
}

// Whole lines of CSV without quotes, comments and stray line ends, which need no parser: a line is a row, and each
// delimiter ends a cell. Most files are like that, and a parser would take half of the time that mapping them costs.

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
function plainTest(options: CsvOptions): (block: Buffer) => boolean {
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
function hasLoneCarriageReturn(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1)) if (bytes[at + 1] !== LF) return true;
  return false;
}
