/** The file as a mapper sees it. */
import { basename } from "node:path";
import type {
  CsvOptions,
  FixedColumn,
  FixedWidthOptions,
  JsonItem,
  JsonLimits,
  JsonOptions,
  Line,
  LineEndOptions,
  LineOptions,
  MapperFile,
  SheetOptions,
  TextCells,
  TextOptions,
  TextRow,
  XmlElement,
  XmlOptions,
} from "./contract.ts";
import { csvCells, csvRows } from "./csv.ts";
import type { Cut } from "./cut.ts";
import { type Input, rawChunks, utf8Chunks } from "./decode.ts";
import { openLastLine } from "./file-head.ts";
import { rowClass } from "./header.ts";
import { type AssemblerLimits, type FoundItem, JsonAssembler, JsonFault, parseSelector } from "./json-assembler.ts";
import { JsonTokenizer } from "./json-tokens.ts";
import { DEPTH_MAX, ITEM_BYTES_MAX } from "./limits.ts";
import { lineChunks, wholeText } from "./lines.ts";
import { keepBlocks, madeRows, type PlainRows } from "./plain-rows.ts";
import { type RefuseRow, type RowFault, UnreadableError } from "./row-error.ts";
import { type RowTracker, stampPlace } from "./row-place.ts";
import { sheetNames, xlsxCells, xlsxRows } from "./xlsx.ts";
import { xmlElements } from "./xml.ts";

/** Follows what is being read of a file. */
export interface ReadWatch {
  /** False when nothing may be read now. Otherwise `ended` follows. */
  begun(use: string): boolean;
  ended(use: string): void;
  during<Value>(use: string, work: () => Promise<Value>): Promise<Value>;
}

const VALID = "Is this the mapper for this kind of file, and the file JSON (RFC 8259)?";
const WHOLE = "Is the file complete? It may have been cut off, or read while it was being written.";

/** Characters of a line that a refusal shows. */
const TEXT_SHOWN = 60;

const UNWATCHED: ReadWatch = { begun: () => true, ended: () => undefined, during: (_, work) => work() };

export interface FileFacts {
  readonly inputPath: string;
  /** Base name and path at the drop. */
  readonly fileName: string;
  readonly filePath: string;
  /** Bytes. */
  readonly size: number;
  /** The whole content, when it was read already. */
  readonly content?: Buffer | undefined;
  readonly cut?: Cut | undefined;
  readonly watch?: ReadWatch | undefined;
  readonly notes?: FileNotes | undefined;
}

/** Facts that the readers learn of a file beside its rows. */
export interface FileNotes {
  /** The mapper reads its rows by lines. */
  isLines: boolean;
  /** A line ended before its columns did. */
  readonly onShort: (row: number) => void;
  /** Receives the comments behind the first row that the mapper does not take itself. */
  readonly onComment?: (comment: string, line: Line) => void;
}

export function createMapperFile(
  facts: FileFacts,
  tracker: RowTracker,
  refuse: RefuseRow,
  signal: AbortSignal,
): MapperFile {
  const input: Input = { path: facts.inputPath, signal, size: facts.size, small: facts.content, cut: facts.cut };
  const pages: Input = { ...input, mayBePage: true };
  const textOf = (options: TextOptions) => (options.html === "read" ? pages : input);
  const notes: FileNotes = facts.notes ?? { isLines: false, onShort: () => undefined };
  const noted = commentNotes(notes);
  const byLines = <Chunk>(options: TextOptions & LineEndOptions, read: (input: Input) => AsyncIterable<Chunk>) => {
    notes.isLines = true;
    const chunks = read(textOf(options));
    return options.lineEnd === "required" ? withLineEnd(chunks, facts) : chunks;
  };
  const { watch = UNWATCHED } = facts;
  const watched = <Row extends object>(chunks: AsyncIterable<Row[]>) =>
    whileRead(tracked(chunks, tracker), watch, "a reader of the file");
  const file = {
    name: basename(facts.fileName),
    path: facts.filePath,
    size: facts.size,
    csv: (options: CsvOptions & { columns?: boolean | readonly string[] } = {}) =>
      options.columns === true || typeof options.columns === "object"
        ? ofBlocks<TextRow>(
            byLines(options, (text) => csvRows(text, noted(options), refuse)),
            watched,
          )
        : ofBlocks<TextCells>(
            byLines(options, (text) => csvCells(text, noted(options))),
            watched,
          ),
    lines: (options: LineOptions = {}) => watched(byLines(options, (text) => lineChunks(text, options))),
    fixedWidth: (options: FixedWidthOptions) =>
      watched<TextRow>(
        byLines(options, (text) => fixedWidthRows(text, noted(options), { refuse, onShort: notes.onShort })),
      ),
    xlsx: (options: SheetOptions & { columns?: boolean } = {}) =>
      watched<object>(options.columns === true ? xlsxRows(input, options) : xlsxCells(input, options)),
    sheets: (options: Parameters<MapperFile["sheets"]>[0] = {}) =>
      watch.during("sheets()", () => sheetNames(input, options)),
    json: (options: JsonOptions) => watched(jsonItems(textOf(options), options)),
    ndjson: (options: JsonLimits = {}) => watched(ndjsonItems(textOf(options), options, refuse)),
    xml: (options: XmlOptions) => watched<XmlElement>(xmlElements(textOf(options), options)),
    text: (options: Parameters<MapperFile["text"]>[0] = {}) =>
      watch.during("text()", () => wholeText(textOf(options), options)),
    bytes: () => whileRead(rawChunks(input), watch, "bytes()"),
  };
  // The overloads of the contract derive the type of the rows from `columns`, which one implementation cannot
  // express.
  return file as unknown as MapperFile;
}

/** Refuses a file without the line end of its last line, once its rows are read. */
async function* withLineEnd<Chunk>(chunks: AsyncIterable<Chunk>, facts: FileFacts): AsyncGenerator<Chunk> {
  const { inputPath: path, size, content, cut } = facts;
  const last = openLastLine({ path, size, content });
  // Where a part of the rows is read elsewhere, the last one is not known here.
  if (last === undefined || cut === undefined) yield* chunks;
  if (last !== undefined)
    throw new UnreadableError("the last line has no line end, which is required", {
      text: last,
      hint: "Was the file cut off here, or written only in part? Otherwise set `lineEnd: any`.",
    });
}

/** Has comments noted where the mapper does not take them itself: of a file that is read twice, each once. */
function commentNotes({ onComment: note }: FileNotes) {
  let notedTo = 0;
  return <Options extends Pick<CsvOptions, "comment" | "onComment">>(options: Options): Options => {
    const { comment, onComment } = options;
    if (comment === undefined || onComment !== undefined || note === undefined) return options;
    return {
      ...options,
      onComment: (line: Line, isBehindRow: boolean) => {
        if (!isBehindRow || line.row <= notedTo) return;
        notedTo = line.row;
        note(comment, line);
      },
    };
  };
}

function ofBlocks<Row extends object>(
  blocks: AsyncIterable<Row[] | PlainRows<Row>>,
  watched: (chunks: AsyncIterable<Row[]>) => AsyncGenerator<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  const rows = watched(madeRows(blocks));
  keepBlocks(rows, blocks);
  return rows;
}

async function* tracked<Row extends object>(
  chunks: AsyncIterable<Row[]>,
  tracker: RowTracker,
): AsyncGenerator<readonly Row[]> {
  for await (const rows of chunks) yield tracker.watch(rows);
}

/** While the mapper has a chunk, nothing is being read: it may leave the rest. */
async function* whileRead<Chunk>(chunks: AsyncIterable<Chunk>, watch: ReadWatch, use: string): AsyncGenerator<Chunk> {
  let isReading = watch.begun(use);
  try {
    if (!isReading) return;
    for await (const chunk of chunks) {
      watch.ended(use);
      isReading = false;
      yield chunk;
      isReading = watch.begun(use);
      if (!isReading) return;
    }
  } finally {
    if (isReading) watch.ended(use);
  }
}

/** Reads lines whose columns are at fixed positions. */
async function* fixedWidthRows(
  input: Input,
  options: FixedWidthOptions,
  { refuse, onShort }: { readonly refuse: RefuseRow; readonly onShort: (row: number) => void },
): AsyncGenerator<Record<string, string>[]> {
  const { columns, comment, onComment, skipLines = 0, leaveOut } = options;
  const width = Math.max(...columns.map((column) => column.start - 1 + column.width));
  let hasRows = false;
  checkColumns(columns);
  const Row = rowClass<string>({ names: columns.map(({ name }) => name), owner: "the list of the mapper's columns" });
  for await (const lines of lineChunks(input, options)) {
    const rows: Record<string, string>[] = [];
    for (const { row, text, isOpen } of lines) {
      if (row <= skipLines || text.trim() === "") continue;
      if (comment !== undefined && text.startsWith(comment)) {
        onComment?.({ row, text }, hasRows);
        continue;
      }
      hasRows = true;
      const cells = cutLine(text, columns, new Row());
      stampPlace(cells, row);
      if (leaveOut?.(text, cells, row) === true) continue;
      if (text.length >= width) rows.push(cells);
      else if (isOpen === true) refuse(cells, cutFault(text, width));
      else {
        onShort(row);
        rows.push(cells);
      }
    }
    if (rows.length > 0) yield rows;
  }
}

function cutLine(text: string, columns: readonly FixedColumn[], cells: Record<string, string>): Record<string, string> {
  // Positions count characters; only a character beyond the basic plane is two units of a string.
  const characters = /[\ud800-\udfff]/.test(text) ? [...text] : undefined;
  for (const { name, start, width, trim } of columns) {
    const end = start - 1 + width;
    const cell = characters?.slice(start - 1, end).join("") ?? text.slice(start - 1, end);
    cells[name] = trim === false ? cell : cell.trim();
  }
  return cells;
}

function cutFault(text: string, width: number): RowFault {
  return {
    message: `the last line ends at character ${text.length}, before its columns do at ${width}, and has no line end`,
    text: text.slice(-TEXT_SHOWN),
    hint: "Was the file cut off here, or written in part? A line that is no row is named by `endAt` or `skipRows`.",
  };
}

/** Throws for wrong columns, which are a fault of the mapper, not of the file. */
function checkColumns(columns: readonly FixedColumn[]): void {
  const names = new Set<string>();
  for (const { name, start, width } of columns) {
    if (!(Number.isInteger(start) && start >= 1 && Number.isInteger(width) && width >= 1))
      throw new TypeError(
        `fixedWidth: the column ${name} needs a start and a width in characters from 1, not ${start} and ${width}`,
      );
    if (names.has(name)) throw new TypeError(`fixedWidth: two columns are named ${name}`);
    names.add(name);
  }
  if (columns.length === 0) throw new TypeError("fixedWidth: no columns are named");
}

// Items of JSON documents and of NDJSON files, streamed by the tokenizer of @streamparser/json.

async function* jsonItems(input: Input, options: JsonOptions): AsyncGenerator<JsonItem[]> {
  const paths = typeof options.path === "string" ? [options.path] : options.path;
  const selectors = paths.map(parseSelector);
  const limits = limitsOf(options);
  const assembler = new JsonAssembler(selectors, limits);
  const { tokenizer, lastToken } = connect(assembler);
  const lines = new LineFinder();
  let found = 0;
  const drain = (): JsonItem[] => {
    const items = assembler.items.map((item) => itemAt(item, lines.lineAt(item.offset)));
    assembler.items = [];
    found += items.length;
    return items;
  };
  for await (const chunk of utf8Chunks(input, options.encoding)) {
    lines.enter(chunk);
    try {
      tokenizer.write(chunk);
      if (lines.end - lastToken() > limits.itemBytesMax)
        throw new JsonFault(
          `a text or number is longer than ${limits.itemBytesMax} bytes`,
          lastToken(),
          "Is it a damaged or hostile file? A mapper for such texts raises `itemBytesMax`.",
        );
    } catch (thrown) {
      throw unreadable(thrown, lines);
    }
    const items = drain();
    if (items.length > 0) yield items;
    lines.leave();
  }
  finish(tokenizer, assembler, lines);
  const items = drain();
  if (items.length > 0) yield items;
  const missing = selectors.filter((selector) => !assembler.present.has(selector));
  if (found === 0 && missing.length === selectors.length)
    throw new UnreadableError(`the document has nothing at ${missing.map(({ path }) => path).join(" or ")}`, {
      hint: "Is this the mapper for this kind of file? The path of its items may have changed.",
    });
}

function finish(tokenizer: JsonTokenizer, assembler: JsonAssembler, lines: LineFinder): void {
  try {
    // Only the end of the document completes a number at its very end.
    tokenizer.end();
  } catch (cause) {
    throw new UnreadableError(`the document ends within ${assembler.openPath}`, {
      row: lines.line,
      hint: WHOLE,
      cause,
    });
  }
  if (!assembler.isComplete)
    throw new UnreadableError(
      lines.end === 0 ? "the file is empty, which is not JSON" : `the document ends within ${assembler.openPath}`,
      { row: lines.line, hint: WHOLE },
    );
}

/** One document per line; a line that is not JSON is refused, and reading continues with the next line. */
async function* ndjsonItems(input: Input, options: JsonLimits, refuse: RefuseRow): AsyncGenerator<JsonItem[]> {
  const limits = limitsOf(options);
  const root = [parseSelector("$")];
  let assembler = new JsonAssembler(root, limits);
  let { tokenizer } = connect(assembler);
  for await (const lines of lineChunks(input, {
    encoding: options.encoding,
    lineCharactersMax: limits.itemBytesMax,
  })) {
    const items: JsonItem[] = [];
    for (const { row, text } of lines) {
      if (text.trim() === "") continue;
      try {
        // The line end completes a number.
        tokenizer.write(`${text}\n`);
        if (!assembler.isComplete) throw new JsonFault(`it ends within ${assembler.openPath}`, 0);
        for (const item of assembler.items) items.push(itemAt(item, row));
        assembler.reset();
      } catch (thrown) {
        const at = {};
        stampPlace(at, row);
        const { message, hint } = faultOf(thrown);
        refuse(at, { message: `the line is not valid JSON: ${message}`, text, hint });
        assembler = new JsonAssembler(root, limits);
        tokenizer = connect(assembler).tokenizer;
      }
    }
    if (items.length > 0) yield items;
  }
}

function limitsOf({ itemBytesMax, depthMax }: JsonLimits): AssemblerLimits {
  return { itemBytesMax: itemBytesMax ?? ITEM_BYTES_MAX, depthMax: depthMax ?? DEPTH_MAX };
}

function connect(assembler: JsonAssembler): { tokenizer: JsonTokenizer; lastToken: () => number } {
  const tokenizer = new JsonTokenizer();
  let last = 0;
  tokenizer.onToken = (token) => {
    last = token.offset;
    assembler.take(token);
  };
  return { tokenizer, lastToken: () => last };
}

function itemAt({ value, path }: FoundItem, row: number): JsonItem {
  const item = { value, path, row };
  stampPlace(item, row);
  return item;
}

/** Finds the lines of byte offsets, which callers must pass in ascending order. */
class LineFinder {
  /** Line of the offset that was requested last. */
  line = 1;
  /** Bytes up to the end of the chunk. */
  end = 0;
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;

  enter(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#at = 0;
    this.end += chunk.length;
  }

  lineAt(offset: number): number {
    const until = Math.min(offset - (this.end - this.#chunk.length), this.#chunk.length);
    for (let next = this.#chunk.indexOf(10, this.#at); next !== -1 && next < until; ) {
      this.line += 1;
      this.#at = next + 1;
      next = this.#chunk.indexOf(10, this.#at);
    }
    return this.line;
  }

  leave(): void {
    this.lineAt(this.end);
  }
}

interface Fault {
  readonly message: string;
  readonly hint?: string | undefined;
  readonly offset?: number | undefined;
}

function faultOf(thrown: unknown): Fault {
  if (thrown instanceof JsonFault) return thrown;
  if (!(thrown instanceof Error)) throw thrown;
  // The tokenizer reports the place of a fault only in its message.
  const [, sign, offset] =
    /^Unexpected "(.*?)" at chunk position.*absolute position "(\d+)"/s.exec(thrown.message) ?? [];
  if (offset === undefined) throw thrown;
  return { message: `${JSON.stringify(sign)} is not expected here`, offset: Number(offset) };
}

function unreadable(thrown: unknown, lines: LineFinder): UnreadableError {
  const { message, hint, offset } = faultOf(thrown);
  const row = offset === undefined ? lines.line : lines.lineAt(offset);
  return new UnreadableError(`line ${row} is not valid JSON: ${message}`, {
    row,
    cause: thrown,
    hint: hint ?? VALID,
  });
}
