/**
 * Streams the rows of a sheet of a workbook. Dates are wall time, independent of the zone of this machine.
 */

import type { CellValue, SheetOptions } from "./contract.ts";
import type { Input } from "./decode.ts";
import { type Header, readHeader, rowClass, unnamedFault } from "./header.ts";
import { SHEET_BYTES_MAX } from "./limits.ts";
import { isUnreadable, UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";
import { WorkbookArchive } from "./workbook-archive.ts";
import { type Book, type BookSheet, openBook } from "./xlsx-book.ts";
import { PartParser, SAVE_AGAIN } from "./xlsx-part.ts";
import { PlainPart } from "./xlsx-plain.ts";
import { type ParsedRow, SheetHandler } from "./xlsx-sheet.ts";

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
