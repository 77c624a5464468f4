/** The lines of a CSV file before its header. */
import { parse } from "csv-parse/sync";
import type { CsvOptions } from "./contract.ts";
import { PREAMBLE_LINES_MAX, ROW_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";

/** Leaves out the lines before the header; `line` is then that at which the header begins. */
export class Preamble {
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
