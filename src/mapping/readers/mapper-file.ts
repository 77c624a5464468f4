/** The file as a mapper sees it. */
import { basename } from "node:path";
import type {
  CsvOptions,
  FixedWidthOptions,
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
import { type Input, rawChunks } from "./decode.ts";
import { openLastLine } from "./file-head.ts";
import { fixedWidthRows } from "./fixed-width.ts";
import { jsonItems, ndjsonItems } from "./json.ts";
import { lineChunks, wholeText } from "./lines.ts";
import { keepBlocks, madeRows, type PlainRows } from "./plain-rows.ts";
import type { RefuseRow } from "./refuse.ts";
import { UnreadableError } from "./row-error.ts";
import type { RowTracker } from "./row-place.ts";
import { sheetNames, xlsxCells, xlsxRows } from "./xlsx.ts";
import { xmlElements } from "./xml.ts";

/** Follows what is being read of a file. */
export interface ReadWatch {
  /** False when nothing may be read now. Otherwise `ended` follows. */
  begun(use: string): boolean;
  ended(use: string): void;
  during<Value>(use: string, work: () => Promise<Value>): Promise<Value>;
}

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
