/**
 * Streams the rows of a sheet of a workbook. Dates are wall time, independent of the zone of this machine.
 */

import { entryRefusal, openZip, readZipEntry, type ZipEntry, type ZipFile, zipEntries } from "#core/zip.ts";
import type { CellValue, SheetOptions } from "./contract.ts";
import type { Input } from "./decode.ts";
import { fileHead } from "./file-head.ts";
import { type Header, readHeader, rowClass, unnamedFault } from "./header.ts";
import {
  DIRECTORY_BYTES_MAX,
  PART_BYTES_MAX,
  PART_ELEMENTS_MAX,
  SHARED_PART_BYTES_MAX,
  SHEET_BYTES_MAX,
  UNPACK_RATIO_MAX,
  UNPACKED_FREE_BYTES,
} from "./limits.ts";
import { knownFormat, PAGE_BYTES, refusePage } from "./magic.ts";
import { isUnreadable, UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";
import { isDateFormat, STANDARD_DATE_FORMATS } from "./serial-date.ts";
import { damagedPart, PartParser, SAVE_AGAIN } from "./xlsx-part.ts";
import { PlainPart } from "./xlsx-plain.ts";
import { type ParsedRow, type SheetBook, SheetHandler } from "./xlsx-sheet.ts";
import { SharedStrings } from "./xlsx-strings.ts";

/** Length of an entry in the directory, without its name. */
const CENTRAL_BYTES = 46;

const WORKBOOK = "xl/workbook.xml";

/** Elements deeper than this are ignored. */
const DEPTH_READ = 3;

/**
 * Rows as arrays of cells, from column A and from the header row; each is stamped with its row number and the
 * sheet.
 */
export async function* xlsxCells(input: Input, options: SheetOptions): AsyncGenerator<CellValue[][]> {
  const headerRow = options.headerRow ?? 1;
  for await (const { rows, sheet } of sheetRows(input, options.sheet ?? 1)) {
    const chunk: CellValue[][] = [];
    for (const { row, cells } of rows) {
      if (row < headerRow) continue;
      stampPlace(cells, row, sheet);
      chunk.push(cells);
    }
    if (chunk.length > 0) yield chunk;
  }
}

/** Rows by the names of the header. */
export async function* xlsxRows(input: Input, options: SheetOptions): AsyncGenerator<Record<string, CellValue>[]> {
  const { headerRow = 1, headerRows = 1 } = options;
  const head: string[][] = [];
  let names: ((row: number, cells: readonly CellValue[]) => Record<string, CellValue>) | undefined;
  const begin = (sheet: string) => {
    if (!head.some((cells) => cells.some((cell) => cell !== "")))
      throw new UnreadableError(`the header row ${headerRow} of sheet "${sheet}" is empty`, {
        sheet,
        row: headerRow,
        hint: "The mapper must name the row with the names of the columns.",
      });
    return cellNamer(readHeader(head, options, { row: headerRow, sheet }), options.unnamed !== "skip");
  };
  for await (const { rows, sheet } of sheetRows(input, options.sheet ?? 1)) {
    const chunk: Record<string, CellValue>[] = [];
    for (const { row, cells } of rows) {
      if (row < headerRow) continue;
      if (row < headerRow + headerRows) {
        // A workbook leaves out rows without cells, also within a header.
        while (head.length < row - headerRow) head.push([]);
        head.push(cells.map(textOf));
        continue;
      }
      names ??= begin(sheet);
      const named = names(row, cells);
      stampPlace(named, row, sheet);
      chunk.push(named);
    }
    if (chunk.length > 0) yield chunk;
  }
}

function cellNamer(
  header: Header,
  refusesUnnamed: boolean,
): (row: number, cells: readonly CellValue[]) => Record<string, CellValue> {
  const { names } = header;
  const Row = rowClass<CellValue>(header);
  return (row, cells) => {
    const named = new Row();
    for (let column = 0; column < Math.max(names.length, cells.length); column += 1) {
      const name = names[column] ?? "";
      const value = cells[column] ?? null;
      if (name !== "") named[name] = value;
      else if (refusesUnnamed && textOf(value) !== "") throw unnamedFault(header, column, row, textOf(value));
    }
    return named;
  };
}

function textOf(value: CellValue): string {
  return value === null ? "" : typeof value === "object" ? value.local : String(value).trim();
}

async function* sheetRows(
  input: Input,
  wanted: string | number,
): AsyncGenerator<{ readonly rows: readonly ParsedRow[]; readonly sheet: string }> {
  const archive = await WorkbookArchive.open(input);
  try {
    const book = await openBook(archive);
    const { name, part } = findSheet(book, wanted);
    if (!archive.has(part))
      throw new UnreadableError(`the sheet "${name}" is missing in the workbook`, {
        sheet: name,
        hint: SAVE_AGAIN,
      });
    const handler = new SheetHandler(name, await book.forCells());
    const reader = new PlainPart(new PartParser(`the sheet "${name}"`, handler), handler);
    for await (const text of archive.text(part, SHEET_BYTES_MAX)) {
      input.signal.throwIfAborted();
      reader.write(text);
      const rows = handler.drain();
      if (rows.length > 0) yield { rows, sheet: name };
    }
    reader.end();
    const rows = handler.drain();
    if (rows.length > 0) yield { rows, sheet: name };
  } catch (cause) {
    if (input.signal.aborted) throw input.signal.reason;
    if (isUnreadable(cause) || !(cause instanceof Error)) throw cause;
    throw new UnreadableError(`the file cannot be read as a workbook (.xlsx): ${cause.message}`, {
      hint: SAVE_AGAIN,
      cause,
    });
  } finally {
    archive.close();
  }
}

/** Names of the sheets, in their order. */
export async function sheetNames(input: Input, options: { readonly hidden?: boolean | undefined }): Promise<string[]> {
  const archive = await WorkbookArchive.open(input);
  try {
    const { sheets } = await openBook(archive);
    return (options.hidden === true ? sheets : sheets.filter(isVisible)).map(({ name }) => name);
  } finally {
    archive.close();
  }
}

function isVisible({ state }: BookSheet): boolean {
  return state !== "hidden" && state !== "veryHidden";
}

/** A number counts the visible sheets; a name finds any sheet. */
function findSheet(book: Book, wanted: string | number): { name: string; part: string } {
  const visible = book.sheets.filter(isVisible);
  const sheet = typeof wanted === "number" ? visible[wanted - 1] : book.sheets.find(({ name }) => name === wanted);
  const part = sheet === undefined ? undefined : book.partOf(sheet);
  if (sheet !== undefined && part !== undefined) return { name: sheet.name, part };
  if (book.sheets.length === 0)
    throw new UnreadableError("the workbook names no sheets that can be read", { hint: SAVE_AGAIN });
  const hidden = book.sheets.filter((one) => !isVisible(one));
  const others = hidden.length === 0 ? "" : ` Hidden sheets, which are read only by name, are: ${quoted(hidden)}.`;
  throw new UnreadableError(`the workbook has no sheet ${typeof wanted === "number" ? wanted : `"${wanted}"`}`, {
    hint: `Its sheets are: ${quoted(visible)}.${others}`,
  });
}

function quoted(sheets: readonly BookSheet[]): string {
  return sheets.map(({ name }) => `"${name}"`).join(", ");
}

// The description of its sheets in a workbook (ECMA-376, part 1, 18.2 and 18.8): names, parts, number
// formats, and the texts of its cells.

interface BookSheet {
  readonly name: string;
  readonly relation: string | undefined;
  /** `hidden` and `veryHidden` sheets are not shown to people. */
  readonly state: string | undefined;
}

interface Book {
  readonly sheets: readonly BookSheet[];
  /** Name of the part of a sheet. */
  partOf(sheet: BookSheet): string | undefined;
  /** Reads the styles and texts that the cells of any sheet refer to. */
  forCells(): Promise<SheetBook>;
}

interface Relation {
  readonly id: string | undefined;
  readonly type: string;
  readonly target: string;
}

type Attributes = Readonly<Record<string, string>>;

async function openBook(archive: WorkbookArchive): Promise<Book> {
  if (!archive.has(WORKBOOK))
    throw new UnreadableError("the file is an archive, but not a workbook (.xlsx)", { hint: SAVE_AGAIN });
  const relations = await readRelations(archive);
  const { sheets, is1904 } = await readWorkbook(archive);
  const partByType = (type: string) =>
    partName(relations.find((one) => one.type.endsWith(`/${type}`))?.target ?? `${type}.xml`);
  return {
    sheets,
    partOf(sheet) {
      const relation = relations.find(({ id }) => id !== undefined && id === sheet.relation);
      return relation === undefined ? undefined : partName(relation.target);
    },
    async forCells() {
      const styles = partByType("styles");
      const formats = archive.has(styles) ? await readDateFormats(archive, styles) : [];
      const strings = partByType("sharedStrings");
      return {
        strings: await SharedStrings.read(strings, archive.text(strings, SHARED_PART_BYTES_MAX)),
        is1904,
        dateFormat: (style) => formats[style],
      };
    },
  };
}

async function readRelations(archive: WorkbookArchive): Promise<readonly Relation[]> {
  const relations: Relation[] = [];
  await readElements(archive, "xl/_rels/workbook.xml.rels", (path, { Id, Type = "", Target = "" }) => {
    if (path === "Relationships/Relationship") relations.push({ id: Id, type: Type, target: Target });
  });
  return relations;
}

async function readWorkbook(archive: WorkbookArchive): Promise<{ sheets: BookSheet[]; is1904: boolean }> {
  const sheets: BookSheet[] = [];
  let is1904 = false;
  await readElements(archive, WORKBOOK, (path, attributes) => {
    if (path === "workbook/sheets/sheet") {
      const { name = "", state } = attributes;
      sheets.push({ name, state, relation: relationIn(attributes) });
    } else if (path === "workbook/workbookPr")
      is1904 = attributes["date1904"] === "1" || attributes["date1904"] === "true";
  });
  return { sheets, is1904 };
}

/** The prefix of the attribute may vary; usually it is `r:id`. */
function relationIn(attributes: Attributes): string | undefined {
  return Object.entries(attributes).find(([name]) => name.endsWith(":id"))?.[1];
}

/** Returns the date formats by the number of the style; other formats are left out. */
async function readDateFormats(archive: WorkbookArchive, part: string): Promise<readonly (string | undefined)[]> {
  const formats = new Map<string, string | undefined>();
  const styles: (string | undefined)[] = [];
  await readElements(archive, part, (path, { numFmtId = "", formatCode }) => {
    if (path === "styleSheet/numFmts/numFmt") formats.set(numFmtId, formatCode);
    else if (path === "styleSheet/cellXfs/xf") styles.push(numFmtId);
  });
  return styles.map((id = "") => {
    const format = formats.get(id) ?? STANDARD_DATE_FORMATS[id];
    return isDateFormat(format) ? format : undefined;
  });
}

/** Calls the handler for each element of a part that is read into memory, with the names from the root. */
async function readElements(
  archive: WorkbookArchive,
  part: string,
  element: (path: string, attributes: Attributes) => void,
): Promise<void> {
  const names: string[] = [];
  let elements = 0;
  const parser = new PartParser(part, {
    open(name, attributes) {
      elements += 1;
      if (elements > PART_ELEMENTS_MAX) throw damagedPart(part, `it holds more than ${PART_ELEMENTS_MAX} elements`);
      names.push(name);
      if (names.length <= DEPTH_READ) element(names.join("/"), attributes);
    },
    close() {
      names.pop();
    },
    text() {},
  });
  for await (const chunk of archive.text(part, PART_BYTES_MAX)) parser.write(chunk);
  parser.end();
}

/** Targets are relative to `xl/`, or absolute. */
function partName(target: string): string {
  return target.startsWith("/") ? target.slice(1) : `xl/${target}`;
}

/** The parts of a workbook, which is a ZIP archive; they can be read in any order, without temporary files. */
class WorkbookArchive {
  readonly #zip: ZipFile;
  readonly #entries: ReadonlyMap<string, ZipEntry>;

  private constructor(zip: ZipFile, entries: ReadonlyMap<string, ZipEntry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  /** Throws an `UnreadableError` for a file that is not an archive. */
  static async open({ path, small }: Pick<Input, "path" | "small">): Promise<WorkbookArchive> {
    const zip = await openZip(small ?? path).catch(async (fault: Error) => {
      throw openFault(small ?? (await fileHead(path, PAGE_BYTES)), fault);
    });
    try {
      return new WorkbookArchive(zip, await readDirectory(zip));
    } catch (thrown) {
      zip.close();
      throw isUnreadable(thrown) ? thrown : damaged(messageOf(thrown), thrown);
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /**
   * Text of an entry in UTF-8, in chunks that end between characters; empty when there is no such entry.
   * Refuses a damaged entry, and one that unpacks to more than `bytesMax` or to far more than its packed
   * size.
   */
  async *text(name: string, bytesMax: number): AsyncGenerator<string> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const refusal = entryRefusal(entry);
    if (refusal !== null) throw damaged(`the entry ${name}: ${refusal}`);
    const decoder = new TextDecoder("utf-8", { fatal: true });
    for await (const chunk of this.#chunks(entry, bytesMax)) {
      const text = decode(decoder, name, chunk);
      if (text !== "") yield text;
    }
    const rest = decode(decoder, name);
    if (rest !== "") yield rest;
  }

  close(): void {
    this.#zip.close();
  }

  async *#chunks(entry: ZipEntry, bytesMax: number): AsyncGenerator<Buffer> {
    let unpacked = 0;
    try {
      for await (const chunk of (await readZipEntry(this.#zip, entry)) as AsyncIterable<Buffer>) {
        unpacked += chunk.length;
        limitUnpacked(entry, unpacked, bytesMax);
        yield chunk;
      }
    } catch (thrown) {
      if (isUnreadable(thrown)) throw thrown;
      throw damaged(`the entry ${entry.name}: ${messageOf(thrown)}`, thrown);
    }
  }
}

function decode(decoder: TextDecoder, name: string, chunk?: Buffer): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    throw damaged(`the entry ${name} is not UTF-8`);
  }
}

function limitUnpacked({ name, raw }: ZipEntry, unpacked: number, bytesMax: number): void {
  if (unpacked > bytesMax) throw damaged(`the entry ${name} unpacks to more than ${bytesMax} bytes`);
  if (unpacked > UNPACKED_FREE_BYTES && unpacked > raw.compressedSize * UNPACK_RATIO_MAX)
    throw damaged(`the entry ${name} unpacks to more than ${UNPACK_RATIO_MAX} times its size, which no sheet does`);
}

async function readDirectory(zip: ZipFile): Promise<Map<string, ZipEntry>> {
  const entries = new Map<string, ZipEntry>();
  let bytes = 0;
  for await (const entry of zipEntries(zip, "utf-8")) {
    const { fileNameLength, extraFieldLength, fileCommentLength } = entry.raw;
    bytes += CENTRAL_BYTES + fileNameLength + extraFieldLength + fileCommentLength;
    if (bytes > DIRECTORY_BYTES_MAX) throw damaged(`its directory is larger than ${DIRECTORY_BYTES_MAX} bytes`);
    // Some programs begin names with a slash.
    entries.set(entry.name.replace(/^\//, ""), entry);
  }
  return entries;
}

/** Names the format of a file that is not a workbook; throws where it is a page. */
function openFault(first: Buffer, fault: Error): UnreadableError {
  if (first.length === 0) return damaged("it is empty", fault);
  if (first[0] === 0x50 && first[1] === 0x4b)
    return damaged(/signature not found/.test(fault.message) ? "its end is missing" : fault.message, fault);
  refusePage(first);
  const { what = "not an archive, or its end is missing" } = knownFormat(first) ?? {};
  return damaged(`it is ${what}`, fault);
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function damaged(why: string, cause?: unknown): UnreadableError {
  return new UnreadableError(`the file cannot be read as a workbook (.xlsx): ${why}`, {
    hint: "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.",
    cause,
  });
}
