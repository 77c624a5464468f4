/** CSV in chunks of rows, as cells or by the names of the header. Rows know their line in the file. */

import { parse } from "csv-parse/sync";
import { counted } from "#core/text.ts";
import type { CsvOptions } from "./contract.ts";
import { BlockParser, PlainLines, type Records } from "./csv-block.ts";
import { type Input, smallUtf8, utf8Chunks } from "./decode.ts";
import { type Header, readHeader, rowClass, unnamedFault } from "./header.ts";
import { PREAMBLE_LINES_MAX, ROW_BYTES_MAX } from "./limits.ts";
import { type NamedColumns, PlainRows } from "./plain-rows.ts";
import { type RefuseRow, type RowFault, UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";

/**
 * Bytes of a block. The rows of so small a block are freed while they are young, which saves the garbage
 * collector much work.
 */
const BLOCK_BYTES = 16 * 1024;
const NO_RECORDS: Records = { cells: [], lines: [] };

/** Rows as arrays of cells, each stamped with its line. */
export async function* csvCells(input: Input, options: CsvOptions): AsyncGenerator<string[][] | PlainRows<string[]>> {
  for await (const block of csvRecords(input, options)) {
    if (block instanceof PlainLines) yield new PlainRows(block, stampedCells);
    else yield block.cells.map((cells, nth) => stampedCells(cells, block.lines[nth] ?? 0));
  }
}

function stampedCells(cells: string[], line: number): string[] {
  stampPlace(cells, line);
  return cells;
}

/** Rows by the names of the header. */
export async function* csvRows(
  input: Input,
  options: CsvOptions & { readonly columns?: boolean | readonly string[] },
  refuse: RefuseRow,
): AsyncGenerator<Record<string, string>[] | PlainRows<Record<string, string>>> {
  const { headerRows = 1 } = options;
  const head: string[][] = [];
  let headLine = 0;
  let shape = typeof options.columns === "object" ? new RowShaper(givenHeader(options.columns), options) : undefined;
  const make = (record: string[], line: number) => {
    const row = shape?.row(record, line);
    if (shape === undefined || row === undefined) return undefined;
    stampPlace(row, line);
    const fault = shape.fault(record);
    if (fault === undefined) return row;
    refuse(row, fault);
    return undefined;
  };
  for await (const block of csvRecords(input, options)) {
    if (shape !== undefined && block instanceof PlainLines) {
      yield new PlainRows(block, make, shape.columns);
      continue;
    }
    const { cells, lines } = block instanceof PlainLines ? block.records() : block;
    const rows: Record<string, string>[] = [];
    for (let index = 0; index < cells.length; index += 1) {
      const record = cells[index] ?? [];
      const line = lines[index] ?? 0;
      if (shape === undefined) {
        if (head.push(record) === 1) headLine = line;
        if (head.length >= headerRows) shape = new RowShaper(readHeader(head, options, { row: headLine }), options);
        continue;
      }
      const row = make(record, line);
      if (row !== undefined) rows.push(row);
    }
    yield rows;
  }
  if (shape === undefined && head.length > 0)
    throw new UnreadableError(`the file ends within its header, which spans ${headerRows} rows`, {
      row: headLine,
    });
}

/** Line of a header that the file does not have. */
const NO_LINE = 0;

function givenHeader(names: readonly string[]): Header {
  const twice = names.find((name, at) => name === "" || names.indexOf(name) < at);
  if (twice === undefined && names.length > 0) return { names, row: NO_LINE };
  throw new TypeError(`csv: the columns need names that differ, not ${JSON.stringify(names)}`);
}

/** Makes rows of records. */
class RowShaper {
  readonly #header: Header;
  readonly #ragged: NonNullable<CsvOptions["ragged"]>;
  readonly #ignoresExtra: boolean;
  /** Indexes of the columns without a name, which must be empty. */
  readonly #unnamed: readonly number[];
  readonly #named: readonly number[];
  readonly #Row: new () => Record<string, string>;

  constructor(header: Header, options: CsvOptions) {
    const places = header.names.map((name, column) => ({ name, column }));
    this.#header = header;
    this.#ragged = options.ragged ?? "reject";
    this.#ignoresExtra = options.extraCells === "ignore";
    this.#Row = rowClass(
      header.row === NO_LINE ? { names: header.names, owner: "the list of the mapper's columns" } : header,
    );
    this.#named = places.filter(({ name }) => name !== "").map(({ column }) => column);
    this.#unnamed =
      options.unnamed === "skip" ? [] : places.filter(({ name }) => name === "").map(({ column }) => column);
  }

  get columns(): NamedColumns {
    return { names: this.#header.names, unnamed: this.#unnamed };
  }

  row(record: readonly string[], line: number): Record<string, string> {
    const { names } = this.#header;
    const row = new this.#Row();
    for (const column of this.#named) row[names[column] ?? ""] = record[column] ?? "";
    for (const column of this.#unnamed) {
      const text = record[column] ?? "";
      if (text.trim() !== "") throw unnamedFault(this.#header, column, line, text);
    }
    return row;
  }

  /** Returns why a row of this length is refused. */
  fault(record: readonly string[]): RowFault | undefined {
    const expected = this.#header.names.length;
    if (record.length === expected) return undefined;
    if (this.#ragged === "pad" && !record.slice(expected).some((cell) => cell.trim() !== "")) return undefined;
    if (this.#ignoresExtra && record.length > expected) return undefined;
    return {
      message:
        `the row has ${counted(record.length, "cell")} where ` +
        (this.#header.row === NO_LINE ? `${expected} columns are named` : `the header has ${expected}`),
      hint:
        record.length < expected
          ? "Cells are missing: was the file cut off here, or written only in part?"
          : "A cell that contains the delimiter must be quoted; " +
            "the setting of the mapper may also name another delimiter.",
    };
  }
}

// Records of CSV (RFC 4180 and its dialects), parsed in blocks of whole lines so that memory does not grow with the
// file.

/** Plain lines are to be read before the next block is asked for. */
async function* csvRecords(input: Input, options: CsvOptions): AsyncGenerator<Records | PlainLines> {
  const small = smallRecords(input, options);
  if (small !== null) {
    yield small;
    return;
  }
  const preamble = new Preamble(options);
  let blocks: Blocks | undefined;
  for await (const chunk of preamble.after(utf8Chunks(input, options.encoding))) {
    blocks ??= new Blocks(options, new BlockParser(options, chunk, preamble.line));
    for (let at = 0; at < chunk.length; at += BLOCK_BYTES) yield blocks.add(chunk.subarray(at, at + BLOCK_BYTES));
    if (input.cut?.isNext === true && blocks.isEmpty && hasNoState(options.encoding))
      await input.cut.reach(blocks.line);
  }
  if (blocks !== undefined) yield blocks.end();
}

/** Whether text can be decoded from any line end on. */
function hasNoState(encoding = "utf-8"): boolean {
  return /^utf-?8$/i.test(encoding);
}

/** Returns the records of a file that is one block at once, without a stream. */
function smallRecords(input: Input, options: CsvOptions): Records | PlainLines | null {
  const { skipLines = 0, headerAt } = options;
  if (skipLines !== 0 || headerAt !== undefined) return null;
  const bytes = smallUtf8(input, options.encoding);
  if (bytes === null || bytes.length > BLOCK_BYTES) return null;
  return new BlockParser(options, bytes, 1).parse(bytes, true).rows;
}

/** Cuts bytes into blocks that end with a line, and holds back the row that is not complete. */
class Blocks {
  readonly #parser: BlockParser;
  readonly #openBytesMax: number;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #holdsLineEnd = false;
  /**
   * Length at which the open row is parsed again: a row with line breaks in its cells is parsed again only
   * after it grew much.
   */
  #parseAtBytes = 0;

  constructor({ rowBytesMax = ROW_BYTES_MAX }: CsvOptions, parser: BlockParser) {
    this.#parser = parser;
    this.#openBytesMax = rowBytesMax + BLOCK_BYTES;
  }

  /** Whether no row is held back. */
  get isEmpty(): boolean {
    return this.#heldBytes === 0;
  }

  /** Line at which the next row begins, once all rows that were handed out are read. */
  get line(): number {
    return this.#parser.line;
  }

  add(bytes: Buffer): Records | PlainLines {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    this.#holdsLineEnd ||= bytes.includes(this.#parser.lineEnd);
    if (!this.#holdsLineEnd && this.#heldBytes > this.#openBytesMax) throw this.#parser.rowTooLong();
    if (!this.#holdsLineEnd || this.#heldBytes < this.#parseAtBytes) return NO_RECORDS;
    const held = this.#joined();
    const end = held.lastIndexOf(this.#parser.lineEnd) + 1;
    const block = this.#parser.parse(held.subarray(0, end), false);
    this.#hold(held.subarray(block.consumed), block.consumed < end);
    return block.rows;
  }

  end(): Records | PlainLines {
    const last = this.#joined();
    return last.length === 0 ? NO_RECORDS : this.#parser.parse(last, true).rows;
  }

  #joined(): Buffer {
    const [first, ...more] = this.#held;
    return first !== undefined && more.length === 0 ? first : Buffer.concat(this.#held);
  }

  #hold(rest: Buffer, isWithinQuotes: boolean): void {
    if (rest.length > this.#openBytesMax) throw this.#parser.rowTooLong();
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    this.#holdsLineEnd = isWithinQuotes;
    this.#parseAtBytes = isWithinQuotes ? Math.min(2 * rest.length, this.#openBytesMax + BLOCK_BYTES) : 0;
  }
}

// The lines of a CSV file before its header.

/** Leaves out the lines before the header; `line` is then that at which the header begins. */
class Preamble {
  line = 1;
  readonly #options: CsvOptions;
  #tested = 0;
  #isOver = false;

  constructor(options: CsvOptions) {
    this.#options = options;
  }

  after(chunks: Iterable<Buffer> | AsyncIterable<Buffer>): Iterable<Buffer> | AsyncIterable<Buffer> {
    const { skipLines = 0, headerAt } = this.#options;
    return skipLines === 0 && headerAt === undefined ? chunks : this.#rest(chunks);
  }

  async *#rest(chunks: Iterable<Buffer> | AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let open: Buffer[] = [];
    for await (const chunk of chunks) {
      if (this.#isOver) {
        yield chunk;
        continue;
      }
      open.push(chunk);
      const openBytes = open.reduce((sum, { length }) => sum + length, 0);
      // A line that spans many chunks is tested once, when it ends.
      if (openBytes <= ROW_BYTES_MAX && !hasLineEnd(open)) continue;
      const rest = this.#pass(Buffer.concat(open), false);
      open = [rest];
      if (this.#isOver) {
        if (rest.length > 0) yield rest;
      } else if (rest.length > ROW_BYTES_MAX) throw this.#tooLong();
    }
    if (this.#isOver) return;
    const last = this.#pass(Buffer.concat(open), true);
    if (last.length > 0) yield last;
    if (!this.#isOver && this.#options.headerAt !== undefined) throw this.#notFound();
  }

  /** Returns the bytes from the header, or keeps the line that is not complete. */
  #pass(bytes: Buffer, isEnd: boolean): Buffer {
    const { skipLines = 0, headerAt } = this.#options;
    let start = 0;
    while (start < bytes.length) {
      if (this.line > skipLines && headerAt === undefined) break;
      const end = lineEnd(bytes, start, isEnd);
      if (end === -1) return bytes.subarray(start);
      if (this.line > skipLines && this.#isHeader(bytes.toString("utf8", start, end))) break;
      start = end;
      this.line += 1;
    }
    this.#isOver = start < bytes.length || (headerAt === undefined && this.line > skipLines);
    return bytes.subarray(start);
  }

  #isHeader(line: string): boolean {
    const { comment, headerAt } = this.#options;
    const text = line.replace(/[\r\n]+$/, "");
    if (text.trim() === "" || (comment !== undefined && text.startsWith(comment))) return false;
    this.#tested += 1;
    if (this.#tested > PREAMBLE_LINES_MAX) throw this.#notFound();
    return headerAt?.(lineCells(text, this.#options)) === true;
  }

  #notFound(): UnreadableError {
    return new UnreadableError(
      this.#tested > PREAMBLE_LINES_MAX
        ? `none of the first ${PREAMBLE_LINES_MAX} lines is the header that the mapper expects`
        : "no line is the header that the mapper expects",
      {
        hint: "Is this the mapper for this kind of file? The names or the delimiter of its columns may have changed.",
      },
    );
  }

  #tooLong(): UnreadableError {
    return new UnreadableError(`line ${this.line} is longer than ${ROW_BYTES_MAX} bytes`, {
      row: this.line,
      hint: "Is it a text file of lines, and this the mapper for it?",
    });
  }
}

/** Whether the last chunk, or a CR just before it, may end a line. */
function hasLineEnd(open: readonly Buffer[]): boolean {
  const last = open.at(-1);
  return last === undefined || last.includes(10) || last.includes(13) || open.at(-2)?.at(-1) === 13;
}

/** Returns the place after the line end, or -1 when the line end has not arrived yet. */
function lineEnd(bytes: Buffer, start: number, isEnd: boolean): number {
  for (let at = start; at < bytes.length; at += 1) {
    if (bytes[at] === 10) return at + 1;
    if (bytes[at] !== 13) continue;
    if (at + 1 === bytes.length && !isEnd) return -1;
    return bytes[at + 1] === 10 ? at + 2 : at + 1;
  }
  return isEnd ? bytes.length : -1;
}

/**
 * Cells of one line. A preamble need not be CSV, so a line that cannot be parsed is cut at the delimiters.
 */
function lineCells(text: string, options: CsvOptions): string[] {
  const { delimiter = ",", quote = '"', trim = false } = options;
  try {
    const [cells = []] = parse(text, {
      delimiter,
      quote,
      escape: options.escape ?? quote,
      relax_quotes: true,
      relax_column_count: true,
      trim,
    }) as string[][];
    return cells;
  } catch {
    // A quote is open at the end of the line.
    return text.split(delimiter);
  }
}
