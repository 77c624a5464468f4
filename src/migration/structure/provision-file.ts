/** Reads the file of `--provision`: a template, as triggers have it, or a table of sites, sources and variables. */
import { stat } from "node:fs/promises";
import { basename, extname } from "node:path";
import { loadDocument } from "../../config/document.ts";
import { findColumn } from "../../provisioning/columns.ts";
import { type ProvisionTemplate, provisionTemplate } from "../../provisioning/options.ts";
import { readTable, type TableRow } from "../../provisioning/table.ts";
import type { Wanted } from "../../provisioning/wanted.ts";
import type { CellValue, MapperFile } from "../../readers/contract.ts";
import { createMapperFile } from "../../readers/mapper-file.ts";
import { isFileError } from "../../readers/row-error.ts";
import { placeOf, RowTracker } from "../../readers/row-place.ts";
import { ConfigError, wordsOf } from "../../support/errors.ts";
import { invalidOption } from "../../support/invalid-option.ts";

export type ProvisionFile =
  | { readonly kind: "template"; readonly template: ProvisionTemplate }
  | { readonly kind: "table"; readonly wanted: readonly Wanted[] };

/** The delimiters of spreadsheets. The file uses the one with which its first row has a column of the table. */
const DELIMITERS = [",", ";", "\t"] as const;
const ROWS_MAX = 200_000;

/** Throws `ConfigError` when the file cannot be read, or is ambiguous (HG-MIGR-020, HG-CONF-002). */
export async function readProvisionFile(path: string, signal: AbortSignal): Promise<ProvisionFile> {
  const extension = extname(path).toLowerCase();
  if (extension === ".yaml" || extension === ".yml")
    return { kind: "template", template: loadDocument(path, provisionTemplate) };
  if (extension !== ".csv" && extension !== ".xlsx")
    throw invalidOption("--provision", `${path} is neither a template (.yaml) nor a table (.csv, .xlsx)`);
  const rows = await tableRows(path, extension, signal).catch((thrown: unknown) => {
    if (thrown instanceof ConfigError || signal.aborted) throw thrown;
    const at = isFileError(thrown) && thrown.row !== undefined ? `row ${thrown.row}: ` : "";
    throw new ConfigError("HG-MIGR-020", {
      operation: "read master data",
      subject: path,
      message: `${path} cannot be read: ${at}${wordsOf(thrown)}`,
      cause: thrown,
    });
  });
  return { kind: "table", wanted: readTable(basename(path), rows) };
}

async function tableRows(path: string, extension: string, signal: AbortSignal): Promise<readonly TableRow[]> {
  const { size } = await stat(path);
  const file = createMapperFile(
    { inputPath: path, fileName: basename(path), filePath: path, size },
    new RowTracker(),
    () => undefined,
    signal,
  );
  if (extension === ".xlsx") return collect(file.xlsx());
  const read = (delimiter: string, most?: number) => collect(file.csv({ delimiter }), most);
  for (const delimiter of DELIMITERS) {
    const [header] = await read(delimiter, 1);
    if (header?.cells.some((cell) => findColumn(String(cell ?? "").trim()) !== undefined) === true)
      return read(delimiter);
  }
  return read(",");
}

/** Empty rows are left out. */
async function collect(
  chunks: ReturnType<MapperFile["csv"]> | ReturnType<MapperFile["xlsx"]>,
  most = ROWS_MAX,
): Promise<readonly TableRow[]> {
  const rows: TableRow[] = [];
  for await (const chunk of chunks as AsyncIterable<readonly (readonly CellValue[])[]>)
    for (const row of chunk) {
      const cells = row.map((cell) => (typeof cell === "object" && cell !== null ? cell.local : cell));
      if (cells.every((cell) => cell === null || String(cell).trim() === "")) continue;
      rows.push({ row: placeOf(row)?.row ?? rows.length + 1, cells });
      if (rows.length < most) continue;
      if (most < ROWS_MAX) return rows;
      throw new Error(`it has more than ${ROWS_MAX} rows`);
    }
  return rows;
}
