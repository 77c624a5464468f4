/** Rows of a workbook's sheet by the streaming reader of exceljs. Dates come as wall time: no zone of this machine takes part. */
import { Readable } from "node:stream";
import type { Cell, Row } from "exceljs";
import { stampPlace } from "../place.ts";
import { isUnreadable, UnreadableError } from "../row-error.ts";
import type { CellValue, SheetOptions } from "./contract.ts";
import type { Input } from "./decode.ts";
import { ZipArchive } from "./zip.ts";

const CHUNK_ROWS = 500;
const SAVE_AGAIN = "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.";

/**
 * Steps of the streaming reader, which its types leave out. It is fed part by part: its own reading of the archive depends on the
 * order of the parts, loses the end of small ones, and breaks characters at the ends of chunks.
 */
interface BookReader {
  readonly workbookRels?: readonly { readonly Id: string; readonly Type?: string; readonly Target: string }[];
  readonly model?: { readonly sheets?: readonly { readonly name: string; readonly rId: string }[] };
  readonly properties?: { readonly model?: { readonly date1904?: boolean } };
  _parseRels(part: Readable): Promise<void>;
  _parseWorkbook(part: Readable): Promise<void>;
  _parseStyles(part: Readable): Promise<void>;
  _parseSharedStrings(part: Readable): AsyncIterable<unknown>;
  _parseWorksheet(
    part: AsyncIterable<string>,
    number: string,
  ): Iterable<{ readonly value: AsyncIterable<Row> }>;
}

/** Rows as arrays of cells, from column A and the header row on; each stamped with its row number and the sheet. */
export async function* xlsxCells(input: Input, options: SheetOptions): AsyncGenerator<CellValue[][]> {
  let chunk: CellValue[][] = [];
  for await (const { row, sheet, date1904 } of sheetRows(input, options.sheet ?? 1)) {
    if (row.number < (options.headerRow ?? 1)) continue;
    const cells: CellValue[] = [];
    row.eachCell({ includeEmpty: false }, (cell, column) => {
      while (cells.length < column - 1) cells.push(null);
      cells[column - 1] = cellValue(cell, date1904);
    });
    if (cells.length === 0) continue;
    stampPlace(cells, row.number, sheet);
    chunk.push(cells);
    if (chunk.length === CHUNK_ROWS) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** Rows by the names in the header row; names are trimmed, columns without one are left out. */
export async function* xlsxRows(
  input: Input,
  options: SheetOptions,
): AsyncGenerator<Record<string, CellValue>[]> {
  const headerRow = options.headerRow ?? 1;
  let chunk: Record<string, CellValue>[] = [];
  let header: string[] | undefined;
  for await (const { row, sheet, date1904 } of sheetRows(input, options.sheet ?? 1)) {
    if (row.number < headerRow) continue;
    const values = new Map<number, CellValue>();
    row.eachCell({ includeEmpty: false }, (cell, column) => {
      const value = cellValue(cell, date1904);
      if (value !== null) values.set(column, value);
    });
    if (row.number === headerRow) {
      header = [];
      for (const [column, value] of values) header[column] = textOf(value);
      continue;
    }
    if (header === undefined)
      throw new UnreadableError(`the header row ${headerRow} of sheet "${sheet}" is empty`, {
        sheet,
        row: headerRow,
      });
    if (values.size === 0) continue;
    const named: Record<string, CellValue> = {};
    header.forEach((name, column) => {
      if (name !== "") named[name] = values.get(column) ?? null;
    });
    stampPlace(named, row.number, sheet);
    chunk.push(named);
    if (chunk.length === CHUNK_ROWS) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}

function textOf(value: CellValue): string {
  return value === null ? "" : typeof value === "object" ? value.local : String(value).trim();
}

async function* sheetRows(
  input: Input,
  wanted: string | number,
): AsyncGenerator<{ row: Row; sheet: string; date1904: boolean }> {
  const archive = await ZipArchive.open(input.path);
  try {
    const book = await openBook(archive);
    const { name, part } = findSheet(book, wanted);
    const date1904 = book.properties?.model?.date1904 === true;
    for (const { value: rows } of book._parseWorksheet(checkedXml(archive.text(part), name), "1")) {
      for await (const row of rows) {
        input.signal.throwIfAborted();
        yield { row, sheet: name, date1904 };
      }
    }
  } catch (cause) {
    if (input.signal.aborted) throw input.signal.reason;
    if (isUnreadable(cause) || !(cause instanceof Error)) throw cause;
    throw new UnreadableError(`the file cannot be read as a workbook (.xlsx): ${cause.message}`, {
      hint: SAVE_AGAIN,
      cause,
    });
  } finally {
    await archive.close();
  }
}

/** Names of the sheets, in their order. */
export async function sheetNames(input: Input): Promise<string[]> {
  const archive = await ZipArchive.open(input.path);
  try {
    const book = await openBook(archive);
    return (book.model?.sheets ?? []).map(({ name }) => name);
  } finally {
    await archive.close();
  }
}

/** Reads what the cells of any sheet need: names, date formats and shared strings. */
async function openBook(archive: ZipArchive): Promise<BookReader> {
  const { default: exceljs } = await import("exceljs");
  const partOf = (name: string) => Readable.from(archive.text(name));
  const book = new exceljs.stream.xlsx.WorkbookReader(Readable.from([]), {
    worksheets: "emit",
    sharedStrings: "cache",
    hyperlinks: "ignore",
    styles: "cache",
    entries: "ignore",
  }) as unknown as BookReader;
  if (!archive.has("xl/workbook.xml"))
    throw new UnreadableError("the file is an archive, but no workbook (.xlsx)", { hint: SAVE_AGAIN });
  await book._parseRels(partOf("xl/_rels/workbook.xml.rels"));
  await book._parseWorkbook(partOf("xl/workbook.xml"));
  const styles = partByType(book, "styles");
  if (archive.has(styles)) await book._parseStyles(partOf(styles));
  const strings = partByType(book, "sharedStrings");
  if (archive.has(strings)) for await (const _ of book._parseSharedStrings(partOf(strings)));
  return book;
}

function partByType(book: BookReader, type: string): string {
  const rel = book.workbookRels?.find((candidate) => candidate.Type?.endsWith(`/${type}`));
  return partName(rel?.Target ?? `${type}.xml`);
}

/** Targets are relative to `xl/`, or absolute. */
function partName(target: string): string {
  return target.startsWith("/") ? target.slice(1) : `xl/${target}`;
}

function findSheet(book: BookReader, wanted: string | number): { name: string; part: string } {
  const sheets = book.model?.sheets ?? [];
  const sheet = typeof wanted === "number" ? sheets[wanted - 1] : sheets.find(({ name }) => name === wanted);
  const rel = book.workbookRels?.find(({ Id }) => Id === sheet?.rId);
  if (sheet !== undefined && rel !== undefined) return { name: sheet.name, part: partName(rel.Target) };
  if (sheets.length === 0)
    throw new UnreadableError("the workbook names no sheets that can be read", { hint: SAVE_AGAIN });
  throw new UnreadableError(
    `the workbook has no sheet ${typeof wanted === "number" ? wanted : `"${wanted}"`}`,
    { hint: `Its sheets are: ${sheets.map(({ name }) => `"${name}"`).join(", ")}.` },
  );
}

/** Characters within which the root element of a sheet stands. */
const HEAD_CHARACTERS = 4096;

/** Refuses what exceljs would take for an empty sheet: XML names with a prefix, and no sheet at all. */
async function* checkedXml(chunks: AsyncIterable<string>, sheet: string): AsyncGenerator<string> {
  let head = "";
  let known = false;
  for await (const chunk of chunks) {
    if (!known) {
      head += chunk;
      known = /<(?:worksheet|chartsheet)[\s>]/.test(head);
      if (/<\w+:worksheet[\s>]/.test(head))
        throw new UnreadableError(
          `the sheet "${sheet}" is written with prefixed XML names, which cannot be read`,
          { sheet, hint: SAVE_AGAIN },
        );
      if (!known && head.length > HEAD_CHARACTERS) break;
    }
    yield chunk;
  }
  if (!known)
    throw new UnreadableError(`the sheet "${sheet}" is missing in the workbook`, { sheet, hint: SAVE_AGAIN });
}

function cellValue(cell: Cell, date1904: boolean): CellValue {
  const value: unknown = cell.value;
  if (value === null || value === undefined) return null;
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
  if (value instanceof Date) return wallDate(value.getTime(), cell.numFmt);
  if (typeof value !== "object") return String(value);
  if ("richText" in value && Array.isArray(value.richText))
    return value.richText.map((part: { text?: unknown }) => String(part.text ?? "")).join("");
  if ("formula" in value || "sharedFormula" in value)
    return formulaValue(cell, "result" in value ? value.result : undefined, date1904);
  if ("text" in value) return String(value.text);
  // An error such as #N/A stays visible as text, so that a number of it is refused with its row.
  if ("error" in value) return String(value.error);
  return null;
}

function formulaValue(cell: Cell, result: unknown, date1904: boolean): CellValue {
  if (typeof result === "string" || typeof result === "boolean") return result;
  if (result instanceof Date) return wallDate(result.getTime(), cell.numFmt);
  if (typeof result !== "number") return null;
  if (Number.isNaN(result)) return "#ERROR";
  return isDateFormat(cell.numFmt)
    ? wallDate((result - 25_569 + (date1904 ? 1462 : 0)) * 86_400_000, cell.numFmt)
    : result;
}

function isDateFormat(format: string | undefined): boolean {
  if (format === undefined) return false;
  return /[ymdhs]/i.test(format.replace(/\[[^\]]*\]|"[^"]*"|\\./g, "")) && !/^general$/i.test(format);
}

/**
 * Serials are days as doubles, and quarter hours that are added up in a sheet drift by milliseconds, which the sheet does not show:
 * whole seconds, unless the format shows fractions of them.
 */
function wallDate(ms: number, format: string | undefined): CellValue {
  const step = /s\.0/i.test(format ?? "") ? 1 : 1000;
  const rounded = Math.round(ms / step) * step;
  if (Number.isNaN(rounded) || Math.abs(rounded) > 8.64e15) return "#DATE";
  const text = new Date(rounded).toISOString();
  return { kind: "date", local: text.endsWith(".000Z") ? text.slice(0, 19) : text.slice(0, -1) };
}
