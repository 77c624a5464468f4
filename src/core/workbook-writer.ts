/** Tables as a workbook (.xlsx), written as a stream: a sheet each, whatever their length. */
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { finished } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import type { Row, stream } from "exceljs";
import { syncDirectory, syncFile } from "./durable.ts";

type Workbook = stream.xlsx.WorkbookWriter;
type Sheet = ReturnType<Workbook["addWorksheet"]> & { commit(): void };

/** Dates are instants; a workbook holds them without a zone, and they show UTC. */
export type WorkbookCell = string | number | Date | null;

interface WorkbookColumn {
  readonly name: string;
  /** In characters. */
  readonly width: number;
  /** Of numbers, such as `#,##0`. */
  readonly format?: string;
}

export interface WorkbookTable {
  /** Name of the sheet. A table with more rows than a sheet can contain continues in `… 2`. */
  readonly name: string;
  readonly columns: readonly WorkbookColumn[];
  readonly rows: Iterable<readonly WorkbookCell[]>;
}

/** A sheet holds 1,048,576 rows, and its header is one. */
const SHEET_ROWS_MAX = 1_000_000;
/** Characters that a cell holds. */
const CELL_CHARACTERS_MAX = 32_767;
const ROWS_AT_ONCE = 500;
const TIME = "yyyy-mm-dd hh:mm:ss";

/** Replaces a file of this name once the workbook is complete. */
export async function writeWorkbook(
  tables: readonly WorkbookTable[],
  path: string,
  sheetRowsMax = SHEET_ROWS_MAX,
): Promise<void> {
  const temporary = `${path}.part`;
  try {
    await writeTables(tables, temporary, sheetRowsMax);
    await syncFile(temporary);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

async function writeTables(tables: readonly WorkbookTable[], path: string, sheetRowsMax: number): Promise<void> {
  // It takes a while to load, and few commands need it.
  const { default: exceljs } = await import("exceljs");
  const output = createWriteStream(path);
  const written = finished(output);
  const book = new exceljs.stream.xlsx.WorkbookWriter({ stream: output, useStyles: true });
  const write = async () => {
    for (const table of tables) await writeTable(book, table, sheetRowsMax);
    await book.commit();
  };
  try {
    // After a fault of the disk the writer would wait for ever.
    await Promise.race([write(), written]);
    await written;
  } catch (thrown) {
    output.destroy();
    await written.catch(() => undefined);
    throw thrown;
  }
}

async function writeTable(book: Workbook, { name, columns, rows }: WorkbookTable, sheetRowsMax: number): Promise<void> {
  let sheet = addSheet(book, name, columns);
  let sheets = 1;
  let count = 0;
  for (const row of rows) {
    if (count === sheetRowsMax) {
      sheet.commit();
      sheets += 1;
      count = 0;
      sheet = addSheet(book, `${name} ${sheets}`, columns);
    }
    commitRow(sheet.addRow(row.map(cellOf)));
    count += 1;
    // Rows that are not yet packed are in memory.
    if (count % ROWS_AT_ONCE === 0) await setImmediate();
  }
  sheet.commit();
}

function addSheet(book: Workbook, name: string, columns: readonly WorkbookColumn[]): Sheet {
  const sheet = book.addWorksheet(name, { views: [{ state: "frozen", ySplit: 1 }] }) as Sheet;
  sheet.columns = columns.map(({ name: header, width, format }) => ({
    header,
    width,
    ...(format === undefined ? {} : { style: { numFmt: format } }),
  }));
  sheet.getRow(1).font = { bold: true };
  return sheet;
}

function commitRow(row: Row): void {
  row.eachCell((cell) => {
    if (cell.value instanceof Date) cell.numFmt = TIME;
  });
  row.commit();
}

/** Control characters cannot stand in a workbook, nor half of a surrogate pair in any text. */
function cellOf(cell: WorkbookCell): WorkbookCell {
  if (typeof cell !== "string") return cell;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds them
  const text = cell.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd");
  return text.slice(0, CELL_CHARACTERS_MAX).toWellFormed();
}
