/**
 * The lookup tool of the mapper contract: a table by its name, read once a file, and cached by its digest from file to
 * file.
 */

import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import leven from "leven";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { counted, placeWords } from "#core/text.ts";
import type { LookupFile } from "./contract.ts";
import type { CellValue, Lookup, MapperFile, TextRow } from "./mapper.ts";
import { rowClass } from "./readers/header.ts";
import { createMapperFile } from "./readers/mapper-file.ts";
import { isFileError, RowError } from "./readers/row-error.ts";
import { placeOf, RowTracker } from "./readers/row-place.ts";
import { shown } from "./targets.ts";

/** Limit on the size, since a table is held in memory. */
const LOOKUP_BYTES_MAX = 64_000_000;
const LOOKUP_ROWS_MAX = 1_000_000;
/** Limit on the keys that are searched for a similar one. */
const NEAR_KEYS_MAX = 5_000;

/** Limit on the tables that a worker caches for the next file, when their digest is known. */
const KEPT_MAX = 4;
/** A table with more rows is not cached. */
const KEPT_ROWS_MAX = 50_000;

const kept = new Map<string, Lookup>();

export function createLookups(files: readonly LookupFile[], signal: AbortSignal): (name: string) => Promise<Lookup> {
  const opened = new Map<string, Promise<Lookup>>();

  async function open(name: string): Promise<Lookup> {
    const file = files.find((one) => one.name === name);
    if (file === undefined) throw unknown(name, files);
    if (file.fault !== undefined) throw lookupFault(name, file.fault);
    const key = keyOf(file);
    const known = key === undefined ? undefined : kept.get(key);
    if (known !== undefined) return known;
    const table = await readLookup(file, signal);
    if (key !== undefined && table.size <= KEPT_ROWS_MAX) keep(key, table);
    return table;
  }

  return (name) => {
    const table = opened.get(name) ?? open(name);
    opened.set(name, table);
    return table;
  };
}

function keyOf({ path: _path, ...facts }: LookupFile): string | undefined {
  return facts.digest === undefined ? undefined : JSON.stringify(facts);
}

function keep(key: string, table: Lookup): void {
  kept.set(key, table);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
}

function unknown(name: string, files: readonly LookupFile[]): ConfigError {
  const names = files.map((file) => file.name);
  return lookupFault(
    name,
    names.length === 0
      ? "no lookup is configured"
      : `there is none of this name; there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`,
    "Add it to `lookups` of the configuration, or give it to `headgate map` as --lookup NAME=PATH.",
  );
}

// Reads a lookup table, CSV or workbook, into memory: rows by key. Ambiguous content is refused, since it would
// silently map to the wrong target.

function lookupFault(name: string, why: string, hint?: string, cause?: unknown): ConfigError {
  return new ConfigError("HG-MAP-030", {
    operation: "read lookup",
    subject: name,
    message: `the lookup ${shown(name)} cannot be used: ${why}`,
    ...(hint === undefined ? {} : { hint }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Throws a `ConfigError` that names table, row and column. */
async function readLookup(file: LookupFile, signal: AbortSignal): Promise<Lookup> {
  try {
    const { size } = await stat(file.path);
    if (size > LOOKUP_BYTES_MAX)
      throw lookupFault(file.name, `it has ${size} bytes, more than the limit of ${LOOKUP_BYTES_MAX}`);
    const source = createMapperFile(
      { inputPath: file.path, fileName: basename(file.path), filePath: file.path, size },
      new RowTracker(),
      () => undefined,
      signal,
    );
    await verifyDigest(file, source);
    return await collectRows(file, cellRows(file, source));
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof ConfigError) throw thrown;
    if (!isFileError(thrown)) throw lookupFault(file.name, wordsOf(thrown), undefined, thrown);
    const { message, row, sheet, hint } = thrown;
    throw lookupFault(file.name, `${placeWords({ sheet, row })}${message}`, hint, thrown);
  }
}

/** Invariant 10: a run maps with exactly the table that it is bound to. */
async function verifyDigest({ name, digest }: LookupFile, source: MapperFile): Promise<void> {
  if (digest === undefined) return;
  const hash = createHash("sha256");
  for await (const bytes of source.bytes()) hash.update(bytes);
  if (hash.digest("hex") !== digest) throw lookupFault(name, "its content is not the one that this run was made with");
}

interface TableRow {
  readonly row: number;
  readonly cells: readonly string[];
}

async function* cellRows(file: LookupFile, source: MapperFile): AsyncGenerator<TableRow> {
  const { delimiter, encoding, sheet } = file;
  const chunks: AsyncIterable<readonly (readonly CellValue[])[]> =
    file.format === "xlsx"
      ? source.xlsx(sheet === undefined ? {} : { sheet })
      : source.csv({
          ...(delimiter === undefined ? {} : { delimiter }),
          ...(encoding === undefined ? {} : { encoding }),
        });
  for await (const rows of chunks)
    for (const row of rows) {
      const cells = row.map(cellText);
      if (cells.some((cell) => cell !== "")) yield { row: placeOf(row)?.row ?? 0, cells };
    }
}

function cellText(cell: CellValue): string {
  if (cell === null) return "";
  return (typeof cell === "object" ? cell.local : String(cell)).trim();
}

async function collectRows(file: LookupFile, rows: AsyncIterable<TableRow>): Promise<Lookup> {
  const { name } = file;
  const found = new Map<string, { readonly row: number; readonly cells: TextRow }>();
  let header: readonly string[] | undefined;
  let keyAt = 0;
  let Row = rowClass<string>({ names: [] });
  for await (const { row, cells } of rows) {
    if (header === undefined) {
      header = checkedHeader(file, cells);
      keyAt = file.key === undefined ? 0 : header.indexOf(file.key.trim());
      Row = rowClass({ names: header, owner: `the lookup ${shown(name)}` });
      continue;
    }
    const extra = cells.slice(header.length).some((cell) => cell !== "");
    if (extra || (file.format === "csv" && cells.length !== header.length))
      throw lookupFault(
        name,
        `row ${row} has ${counted(cells.length, "cell")} where the header has ${header.length}`,
        "A cell that holds the delimiter has to be quoted; the entry in `lookups` may also name another `delimiter`.",
      );
    const key = cells[keyAt] ?? "";
    if (key === "") throw lookupFault(name, `row ${row} has no key in column "${header[keyAt]}"`);
    const before = found.get(key);
    if (before !== undefined)
      throw lookupFault(
        name,
        `the key ${shown(key)} is in row ${before.row} and again in row ${row}`,
        "Each key may occur once: remove one of the rows, or name a column whose values are unique as `key`.",
      );
    if (found.size >= LOOKUP_ROWS_MAX) throw lookupFault(name, `it has more than ${LOOKUP_ROWS_MAX} rows`);
    found.set(key, { row, cells: namedCells(Row, header, cells) });
  }
  if (header === undefined) throw lookupFault(name, "it is empty: it has no header");
  return lookupOf(file, header[keyAt] ?? "", new Map(Array.from(found, ([key, { cells }]) => [key, cells])));
}

function checkedHeader({ name, key }: LookupFile, cells: readonly string[]): readonly string[] {
  const twice = cells.find((cell, index) => cell !== "" && cells.indexOf(cell) < index);
  if (twice !== undefined) throw lookupFault(name, `two of its columns are called ${shown(twice)}`);
  if (key === undefined || cells.includes(key.trim())) return cells;
  throw lookupFault(
    name,
    `there is no column ${shown(key)}; there are ${cells
      .filter((cell) => cell !== "")
      .map(shown)
      .join(", ")}`,
    "Correct `key` of the entry in `lookups`; a wrong `delimiter` makes one column of all.",
  );
}

/** Frozen, since the next file may get the same table. */
function namedCells(
  Row: new () => Record<string, string>,
  header: readonly string[],
  cells: readonly string[],
): TextRow {
  const row = new Row();
  for (const [index, column] of header.entries()) if (column !== "") row[column] = cells[index] ?? "";
  return Object.freeze(row);
}

function lookupOf({ name }: LookupFile, column: string, rows: ReadonlyMap<string, TextRow>): Lookup {
  const get = (key: string) => rows.get(String(key).trim());
  return Object.freeze({
    size: rows.size,
    get,
    require(key: string) {
      if (typeof key !== "string")
        throw new RowError(`the key for the lookup ${shown(name)} is missing`, {
          hint: "The column is not in the file, or the row is too short.",
        });
      const row = get(key);
      if (row !== undefined) return row;
      const near = nearestKey(key.trim(), rows);
      throw new RowError(`the lookup ${shown(name)} has no ${shown(key)} in its column ${shown(column)}`, {
        text: key,
        hint: `Add a row for it to the table${near === undefined ? "" : `, or is ${shown(near)} meant?`}`,
      });
    },
  });
}

function nearestKey(wanted: string, rows: ReadonlyMap<string, TextRow>): string | undefined {
  if (rows.size > NEAR_KEYS_MAX || wanted.length > 60) return undefined;
  let near: string | undefined;
  let least = Math.max(1, wanted.length / 3);
  for (const key of rows.keys()) {
    if (Math.abs(key.length - wanted.length) > least) continue;
    const distance = leven(wanted.toLowerCase(), key.toLowerCase());
    if (distance > least || (distance === least && near !== undefined)) continue;
    near = key;
    least = distance;
  }
  return near;
}
