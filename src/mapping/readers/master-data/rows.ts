/** Reads a CSV file or a workbook of master data to what each of its rows says. */

import { extname } from "node:path/posix";
import { counted } from "#core/text.ts";
import type { MasterDataEntity, MasterDataSettings } from "#wire/master-data.ts";
import { csvCells } from "../csv.ts";
import { type Input, rawChunks } from "../decode.ts";
import { lineChunks } from "../lines.ts";
import { madeRows } from "../plain-rows.ts";
import { isFileError } from "../row-error.ts";
import { placeOf } from "../row-place.ts";
import { sheetNames, xlsxCells } from "../xlsx.ts";
import {
  type Cell,
  type Column,
  customPath,
  type Fields,
  findColumn,
  isEmpty,
  type KnownIds,
  quoted,
} from "./columns.ts";

/** Rows of one file, so that they fit in memory. */
const ROWS_MAX = 200_000;
/** Sheets of the templates that explain the others, with their headers; they are not read. */
export const HELP_SHEETS = { Help: ["entity", "column", "about"], Lists: ["column", "id", "name"] } as const;
const REASONS_MAX = 20;
const HEAD_ROWS = 1;

export interface Reason {
  readonly column: string | null;
  readonly message: string;
}

/** The names of the columns as a header writes them. */
export interface Header {
  readonly columns: readonly (Column | null)[];
  readonly names: readonly string[];
}

export interface StatedRow {
  readonly sheet: string | null;
  readonly row: number;
  readonly header: Header;
  /** Fields of each entity, from its filled cells. */
  readonly said: Partial<Record<MasterDataEntity, Fields>>;
  readonly reasons: Reason[];
  readonly notes: string[];
}

/** The columns, sheets and ids that a reader of master data takes. */
export interface TableRules {
  readonly findColumn: (header: string) => Column | undefined;
  /** Completes "there is no such column: …". */
  readonly columnsAre: string;
  readonly sheets: "all" | "first";
  readonly ids: KnownIds;
}

export interface MasterDataFile {
  readonly path: string;
  /** By which a workbook is known, when its first bytes are those of an archive. */
  readonly fileName: string;
  readonly settings: Pick<MasterDataSettings, "delimiter" | "encoding">;
  readonly rules: TableRules;
}

/** Never throws for a fault of the file: rows hold the reasons. */
export async function readRows(file: MasterDataFile, signal: AbortSignal): Promise<StatedRow[]> {
  const input: Input = { path: file.path, signal };
  const { rules } = file;
  const rows: StatedRow[] = [];
  try {
    if (await isWorkbook(input)) {
      const sheets = await sheetNames(input, {});
      for (const sheet of rules.sheets === "all" ? sheets : sheets.slice(0, 1))
        await addRows(rows, xlsxCells(input, { sheet }), sheet, rules);
    } else await addRows(rows, await csvOf(input, file), null, rules);
  } catch (thrown) {
    if (!isFileError(thrown)) throw thrown;
    const { message, hint, sheet = null, row = 1, column = null } = thrown;
    const words = hint === undefined ? message : `${message}. ${hint}`;
    rows.push(emptyRow(sheet, row, [{ column, message: words }]));
  }
  if (rows.length === 0) {
    const message = `${quoted(file.fileName)} has a header and no rows, or is empty`;
    rows.push(emptyRow(null, HEAD_ROWS, [{ column: null, message }]));
  }
  return rows;
}

const NO_HEADER: Header = { columns: [], names: [] };

function emptyRow(sheet: string | null, row: number, reasons: Reason[], header: Header = NO_HEADER): StatedRow {
  return { sheet, row, header, said: {}, reasons, notes: [] };
}

async function isWorkbook(input: Input): Promise<boolean> {
  for await (const bytes of rawChunks(input)) return bytes.subarray(0, 4).toString("latin1") === "PK\x03\x04";
  return false;
}

const DELIMITERS = [";", ",", "\t", "|"] as const;

async function csvOf(input: Input, { settings, fileName }: MasterDataFile): Promise<AsyncIterable<string[][]>> {
  const { encoding } = settings;
  const first = await firstLine(input, encoding);
  const declared = /^"?sep=(.)"?$/i.exec(first)?.[1];
  const delimiter = settings.delimiter ?? declared ?? (extname(fileName) === ".tsv" ? "\t" : likeliest(first));
  return madeRows(csvCells(input, { delimiter, encoding, trim: true, skipLines: declared === undefined ? 0 : 1 }));
}

async function firstLine(input: Input, encoding: string): Promise<string> {
  for await (const lines of lineChunks(input, { encoding }))
    for (const { text } of lines) if (text.trim() !== "") return text.trim();
  return "";
}

/** The delimiter by which most columns of the header are known; of those by which none is, the most frequent one. */
function likeliest(header: string): string {
  const known = (delimiter: string) => {
    const names = header.split(delimiter).map((name) => name.replace(/^\s*"|"\s*$/g, ""));
    return names.filter((name) => findColumn(name) !== undefined).length + names.length / (header.length + 2);
  };
  return DELIMITERS.reduce((best, one) => (known(one) > known(best) ? one : best));
}

/** Adds the rows of a table; one without any row adds none. */
export async function addRows(
  rows: StatedRow[],
  chunks: AsyncIterable<readonly Cell[][]> | Iterable<readonly Cell[][]>,
  sheet: string | null,
  rules: TableRules,
): Promise<void> {
  let header: Header | null = null;
  for await (const chunk of chunks)
    for (const cells of chunk) {
      if (cells.every(isEmpty)) continue;
      const row = placeOf(cells)?.row ?? 0;
      if (header === null) {
        header = headerOf(cells, rules);
        if (isHelp(sheet, header)) return;
        const reasons = headerFaults(header, rules);
        if (reasons.length === 0) continue;
        rows.push(emptyRow(sheet, row, reasons, header));
        // Cells of unknown columns say nothing.
        return;
      }
      if (rows.length === ROWS_MAX) {
        const message = `the file has more than ${ROWS_MAX} rows: send it in parts`;
        rows.push(emptyRow(sheet, row, [{ column: null, message }], header));
        return;
      }
      rows.push(statedRow(cells, { sheet, row, header }, rules));
    }
}

/** A sheet of the user's own with such a name has another header. */
function isHelp(sheet: string | null, { names }: Header): boolean {
  return Object.entries(HELP_SHEETS).some(([name, columns]) => name === sheet && columns.join() === names.join());
}

function headerOf(cells: readonly Cell[], { findColumn }: TableRules): Header {
  const names = cells.map((cell) => (typeof cell === "object" ? "" : String(cell).trim()));
  return { names, columns: names.map((name) => findColumn(name) ?? null) };
}

/** `source_custom.FORM.GROUP.FIELD` names these levels in any case. */
function sameFieldKey(name: string): string {
  const [of = "", ...key] = name.split(".");
  return customPath(key.join(".")).length === 3 ? `${of}.${key.join(".").toLowerCase()}` : name;
}

function headerFaults({ names, columns }: Header, { columnsAre }: TableRules): Reason[] {
  const reasons: Reason[] = [];
  const known = new Map<string, string>();
  for (const [at, name] of names.entries()) {
    const found = columns[at] ?? null;
    if (name === "") continue;
    if (found === null) {
      reasons.push({ column: name, message: `there is no column ${quoted(name)}: ${columnsAre}` });
      continue;
    }
    const key = sameFieldKey(found.name);
    const before = known.get(key);
    if (before !== undefined)
      reasons.push({ column: name, message: `the header names ${found.name} twice, also as ${quoted(before)}` });
    known.set(key, name);
  }
  return reasons.slice(0, REASONS_MAX);
}

function statedRow(
  cells: readonly Cell[],
  place: Pick<StatedRow, "sheet" | "row" | "header">,
  { ids }: TableRules,
): StatedRow {
  const { header, sheet } = place;
  const reasons: Reason[] = [];
  const said: Partial<Record<MasterDataEntity, Record<string, unknown>>> = {};
  const width = header.names.length;
  if (cells.length > width && !cells.slice(width).every(isEmpty))
    reasons.push({
      column: null,
      message: `the row has ${counted(cells.length, "cell")} where the header has ${width}`,
    });
  // Sheets end each row at its last filled cell.
  else if (sheet === null && cells.length < width)
    reasons.push({ column: null, message: `the row has ${cells.length} cells of ${width}: is the file cut off here?` });
  for (const [at, cell] of cells.entries()) {
    const column = header.columns[at];
    if (at >= width || isEmpty(cell)) continue;
    if (column === null || column === undefined) {
      reasons.push({ column: null, message: `the cell ${at + 1} is filled, and its column has no name` });
      continue;
    }
    try {
      said[column.of] = Object.assign(said[column.of] ?? {}, column.read(cell, ids));
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      reasons.push({ column: header.names[at] ?? column.name, message: `the cell ${thrown.message}` });
    }
  }
  return { ...place, said, reasons: reasons.slice(0, REASONS_MAX), notes: [] };
}

/** The name of the column of a field as the header writes it; null when the header has none. */
export function columnOf({ header }: StatedRow, entity: MasterDataEntity, field: string): string | null {
  const at = header.columns.findIndex((column) => column?.of === entity && column.fields.includes(field));
  return at === -1 ? null : (header.names[at] ?? null);
}
