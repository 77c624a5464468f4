/**
 * Records of CSV (RFC 4180 and its dialects), parsed in blocks of whole lines so that memory does not grow with the
 * file.
 */
import type { CsvOptions } from "./contract.ts";
import { BlockParser, type Records } from "./csv-block.ts";
import type { PlainLines } from "./csv-plain.ts";
import { Preamble } from "./csv-preamble.ts";
import { type Input, smallUtf8, utf8Chunks } from "./decode.ts";
import { ROW_BYTES_MAX } from "./limits.ts";

/**
 * Bytes of a block. The rows of so small a block are freed while they are young, which saves the garbage
 * collector much work.
 */
const BLOCK_BYTES = 16 * 1024;
const NO_RECORDS: Records = { cells: [], lines: [] };

/** Plain lines are to be read before the next block is asked for. */
export async function* csvRecords(input: Input, options: CsvOptions): AsyncGenerator<Records | PlainLines> {
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
