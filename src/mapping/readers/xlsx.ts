/** Rows of a workbook's sheet by the streaming reader of exceljs. Dates come as wall time: no zone of this machine takes part. */
import { createReadStream } from "node:fs";
import type { Cell, Row } from "exceljs";
import type { CellValue, SheetOptions } from "../mapper.ts";
import { stampPlace } from "../place.ts";
import { isUnreadable, UnreadableError } from "../row-error.ts";
import type { Input } from "./decode.ts";

const CHUNK_ROWS = 500;

/** Parts of the streaming reader that its types leave out. */
interface OpenBook {
  readonly workbookRels?: readonly { readonly Id: string; readonly Target: string }[];
  readonly model?: {
    readonly sheets?: readonly { readonly id: unknown; readonly name: string; readonly rId: string }[];
  };
  readonly properties?: { readonly model?: { readonly date1904?: boolean } };
}
interface OpenSheet extends AsyncIterable<Row> {
  readonly id: unknown;
  readonly name: string;
  /** The bytes or text of its XML. */
  iterator: AsyncIterable<Buffer | string>;
}

/** Rows as arrays of cells, from column A; each stamped with its row number and the sheet. */
export async function* xlsxCells(input: Input, options: SheetOptions): AsyncGenerator<CellValue[][]> {
  let chunk: CellValue[][] = [];
  for await (const { row, sheet, date1904 } of sheetRows(input, options.sheet ?? 1)) {
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
  const { default: exceljs } = await import("exceljs");
  const stream = createReadStream(input.path);
  const book = new exceljs.stream.xlsx.WorkbookReader(stream, {
    worksheets: "emit",
    sharedStrings: "cache",
    hyperlinks: "ignore",
    styles: "cache",
    entries: "ignore",
  });
  const seen: string[] = [];
  let found = false;
  try {
    for await (const worksheet of book) {
      const sheet = worksheet as unknown as OpenSheet;
      const open = book as unknown as OpenBook;
      const { name, position } = identify(sheet, open, seen.length + 1);
      seen.push(name);
      // Reading on to the end lets exceljs remove the temporary files of sheets that stand before the shared strings.
      if (found || (typeof wanted === "number" ? position !== wanted : name !== wanted)) {
        await drain(sheet.iterator);
        continue;
      }
      found = true;
      sheet.iterator = checkedXml(sheet.iterator, name);
      const date1904 = open.properties?.model?.date1904 === true;
      for await (const row of sheet) {
        input.signal.throwIfAborted();
        yield { row, sheet: name, date1904 };
      }
    }
  } catch (cause) {
    if (input.signal.aborted) throw input.signal.reason;
    if (isUnreadable(cause)) throw cause;
    throw new UnreadableError("the file cannot be read as a workbook (.xlsx)", {
      hint: "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.",
      cause,
    });
  } finally {
    stream.destroy();
  }
  if (found) return;
  if (seen.length === 0)
    throw new UnreadableError("the file is no workbook (.xlsx): it holds no sheets", {
      hint: "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.",
    });
  throw new UnreadableError(
    `the workbook has no sheet ${typeof wanted === "number" ? wanted : `"${wanted}"`}`,
    {
      hint: `Its sheets are: ${seen.map((name) => `"${name}"`).join(", ")}.`,
    },
  );
}

/** exceljs finds no row where the XML names carry a prefix, so such a sheet would pass for an empty one. */
async function* checkedXml(
  chunks: AsyncIterable<Buffer | string>,
  sheet: string,
): AsyncGenerator<Buffer | string> {
  let head: string | null = "";
  for await (const chunk of chunks) {
    if (head !== null) {
      head += chunk.toString();
      if (/<\w+:worksheet[\s>]/.test(head))
        throw new UnreadableError(
          `the sheet "${sheet}" is written with prefixed XML names, which cannot be read`,
          {
            sheet,
            hint: "Open the workbook in a spreadsheet program and save it again.",
          },
        );
      if (head.length > 4096) head = null;
    }
    yield chunk;
  }
}

/** Name and place in the order of tabs; exceljs itself misses both when the workbook names its parts by absolute paths. */
function identify(sheet: OpenSheet, book: OpenBook, fallback: number): { name: string; position: number } {
  const sheets = book.model?.sheets ?? [];
  const byId = sheets.findIndex((entry) => entry.id === sheet.id && entry.name === sheet.name);
  if (byId !== -1) return { name: sheet.name, position: byId + 1 };
  const part = new RegExp(`(^|/)worksheets/sheet${String(sheet.id)}\\.xml$`);
  const rel = book.workbookRels?.find(({ Target }) => part.test(Target));
  const byRel = sheets.findIndex((entry) => entry.rId === rel?.Id);
  return byRel === -1
    ? { name: sheet.name, position: fallback }
    : { name: sheets[byRel]?.name ?? sheet.name, position: byRel + 1 };
}

/** To the end, since exceljs removes a temporary file that a stream may still be opening otherwise. */
async function drain(chunks: AsyncIterable<unknown>): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  while ((await iterator.next()).done !== true);
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
