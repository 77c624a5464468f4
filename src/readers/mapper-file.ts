/** The file as a mapper sees it. */
import { basename } from "node:path";
import type {
  CsvOptions,
  FixedWidthOptions,
  JsonLimits,
  JsonOptions,
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
import { fixedWidthRows } from "./fixed-width.ts";
import { jsonItems, ndjsonItems } from "./json.ts";
import { lineChunks, wholeText } from "./lines.ts";
import { keepBlocks, madeRows, type PlainRows } from "./plain-rows.ts";
import type { RefuseRow } from "./refuse.ts";
import type { RowTracker } from "./row-place.ts";
import { sheetNames, xlsxCells, xlsxRows } from "./xlsx.ts";
import { xmlElements } from "./xml.ts";

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
  const file = {
    name: basename(facts.fileName),
    path: facts.filePath,
    size: facts.size,
    csv: (options: CsvOptions & { columns?: boolean | readonly string[] } = {}) =>
      options.columns === true || typeof options.columns === "object"
        ? ofBlocks<TextRow>(csvRows(textOf(options), options, refuse), tracker)
        : ofBlocks<TextCells>(csvCells(textOf(options), options), tracker),
    lines: (options: LineOptions = {}) => watched(lineChunks(textOf(options), options), tracker),
    fixedWidth: (options: FixedWidthOptions) => watched<TextRow>(fixedWidthRows(textOf(options), options), tracker),
    xlsx: (options: SheetOptions & { columns?: boolean } = {}) =>
      watched<object>(options.columns === true ? xlsxRows(input, options) : xlsxCells(input, options), tracker),
    sheets: (options: Parameters<MapperFile["sheets"]>[0] = {}) => sheetNames(input, options),
    json: (options: JsonOptions) => watched(jsonItems(textOf(options), options), tracker),
    ndjson: (options: JsonLimits = {}) => watched(ndjsonItems(textOf(options), options, refuse), tracker),
    xml: (options: XmlOptions) => watched<XmlElement>(xmlElements(textOf(options), options), tracker),
    text: (options: Parameters<MapperFile["text"]>[0] = {}) => wholeText(textOf(options), options),
    bytes: () => rawChunks(input),
  };
  // The overloads of the contract derive the type of the rows from `columns`, which one implementation cannot
  // express.
  return file as unknown as MapperFile;
}

function ofBlocks<Row extends object>(
  blocks: AsyncIterable<Row[] | PlainRows<Row>>,
  tracker: RowTracker,
): AsyncGenerator<readonly Row[]> {
  const rows = watched(madeRows(blocks), tracker);
  keepBlocks(rows, blocks);
  return rows;
}

async function* watched<Row extends object>(
  chunks: AsyncIterable<Row[]>,
  tracker: RowTracker,
): AsyncGenerator<readonly Row[]> {
  for await (const rows of chunks) yield tracker.watch(rows);
}
