/** Reads an unknown file as a table, for the proposal of `headgate mapper new`. */
import { basename, extname } from "node:path";
import { type Info, parse } from "csv-parse/sync";
import { findUnit } from "#wire/units.ts";
import { readIso } from "../../iso-text.ts";
import type { CellValue, JsonItem, XmlElement } from "../../mapper.ts";
import { readNumber } from "../../number.ts";
import { fileHead } from "../../readers/file-head.ts";
import { createMapperFile } from "../../readers/mapper-file.ts";
import { RowTracker } from "../../readers/row-place.ts";
import { formatReader } from "../../time-format.ts";

/** The reader call for the rows. */
export type SampleReader =
  | {
      readonly kind: "csv";
      readonly delimiter: string;
      /** Undefined: UTF-8, or by its byte order mark. */
      readonly encoding: string | undefined;
      /** Number of lines before the header. */
      readonly skipLines: number;
      readonly hasHeader: boolean;
      readonly naming: Naming;
    }
  | { readonly kind: "xlsx"; readonly headerRow: number; readonly naming: Naming }
  | { readonly kind: "json"; readonly path: string }
  | { readonly kind: "ndjson" }
  | { readonly kind: "xml"; readonly element: string };

/** Reader options about the names of the header. */
export interface Naming {
  readonly hasDuplicates: boolean;
  readonly hasUnnamed: boolean;
}

export interface SampleTable {
  readonly reader: SampleReader;
  /** Names of the columns; numbers from 1 where there is no header. */
  readonly columns: readonly string[];
  /** The first rows, as text; missing cells are empty. */
  readonly rows: readonly (readonly string[])[];
}

const DAYS = [
  "yyyy-MM-dd",
  "dd/MM/yyyy",
  "dd.MM.yyyy",
  "dd-MM-yyyy",
  "MM/dd/yyyy",
  "MM-dd-yyyy",
  "yyyy/MM/dd",
  "d/M/yyyy",
  "d.M.yyyy",
  "M/d/yyyy",
  "dd.MM.yy",
  "dd/MM/yy",
  "MM/dd/yy",
  "yyyyMMdd",
];
const TIMES = ["HH:mm:ss", "HH:mm", "H:mm:ss", "H:mm", "HH:mm:ss.SSS", "h:mm:ss a", "h:mm a", "HHmm", "HHmmss"];
const STAMPS = DAYS.flatMap((day) =>
  [" ", "'T'", ", "].flatMap((joint) => TIMES.map((time) => `${day}${joint}${time}`)),
);
/** Share of a column's texts that have to fit; the rest may be rows at the end, or faults. */
const SHARE = 0.9;
const SOURCE_NAME = /serial|meter|ean\b|mpan|nmi|prm|pod|device|logger|site|source|station|z[äa]hler|compteur|punkt/i;
const QUANTITY_NAME = /register|quantity|channel|tag|type|obis|param|measure|grandeur|kanal|variable|mapping/i;
const VALUE_NAME = /value|reading|valeur|wert|waarde|valore|consumption|volume|energy/i;
const HEAD_BYTES = 256 * 1024;
const ROWS_MAX = 500;
const DELIMITERS = [",", ";", "\t", "|"] as const;

/** Null when there is no table. Throws the errors of the readers and parsers. */
export async function tableIn(path: string): Promise<SampleTable | null> {
  if (extname(path).toLowerCase() === ".xlsx") return await workbookTable(path);
  const head = await firstBytes(path);
  if (/^\s*</.test(head.text)) return await xmlTable(path, head.text);
  return /^\s*[[{]/.test(head.text) ? await jsonTable(path, head.text) : textTable(head);
}

interface Head {
  readonly text: string;
  readonly encoding: string | undefined;
  readonly isWhole: boolean;
}

async function firstBytes(path: string): Promise<Head> {
  const bytes = await fileHead(path, HEAD_BYTES);
  const isWhole = bytes.length < HEAD_BYTES;
  for (const [mark, encoding] of [
    [[0xff, 0xfe], "utf-16le"],
    [[0xfe, 0xff], "utf-16be"],
  ] as const)
    if (mark.every((byte, at) => bytes[at] === byte))
      return { text: new TextDecoder(encoding).decode(bytes), encoding: undefined, isWhole };
  try {
    // A character that is cut at the end of the head is not a fault.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
    return { text, encoding: undefined, isWhole };
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    return { text: new TextDecoder("windows-1252").decode(bytes), encoding: "windows-1252", isWhole };
  }
}

interface ParsedRow {
  readonly cells: readonly string[];
  /** Line at which it ends, from 1. */
  readonly line: number;
}

function textTable(head: Head): SampleTable | null {
  let best: {
    readonly rows: readonly ParsedRow[];
    readonly delimiter: string;
    readonly width: number;
    readonly score: number;
  } | null = null;
  for (const delimiter of DELIMITERS) {
    const rows = parseRows(head, delimiter);
    const width = usualWidth(rows);
    if (width < 2) continue;
    const score = rows.filter(({ cells }) => cells.length === width).length * width;
    if (best === null || score > best.score) best = { rows, delimiter, width, score };
  }
  if (best === null) return null;
  const { width, delimiter } = best;
  const wide = best.rows.filter(({ cells }) => cells.length === width);
  const rows = wide.slice(firstRow(wide, width));
  const [first] = rows;
  if (first === undefined) return null;
  const hasHeader = !first.cells.some(isFigure);
  const { names, naming } = hasHeader ? nameColumns(first.cells) : numberColumns(first.cells);
  const { encoding } = head;
  return {
    reader: { kind: "csv", delimiter, encoding, skipLines: first.line - 1, hasHeader, naming },
    columns: names,
    rows: rows.slice(hasHeader ? 1 : 0, ROWS_MAX).map(({ cells }) => cells),
  };
}

/** A number, a date or a time. */
function isFigure(cell: string): boolean {
  return /^(?=.*\d)[\d.,:/+-]+(?:[ T][\d.,:/+-]+)?Z?$/.test(cell.trim());
}

/** Number of rows that are compared to find the start of the data. */
const ALIKE = 5;

/**
 * The header, or the first row of data where there is none: some programs pad the lines before the header with empty
 * cells. Data begins where a column has figures from row to row.
 */
function firstRow(wide: readonly ParsedRow[], width: number): number {
  const data = wide.findIndex((_, at) => {
    const rows = wide.slice(at, at + ALIKE);
    return wide[0]?.cells.some((__, column) => rows.every(({ cells }) => isFigure(cells[column] ?? "")));
  });
  const header = wide[data - 1];
  if (header !== undefined && !header.cells.some(isFigure)) return data - 1;
  const filled = wide.findIndex(({ cells }) => cells.filter((cell) => cell.trim() !== "").length > width / 2);
  return filled === -1 ? wide.length : filled;
}

/** Names columns as the readers do when they number duplicates. */
function nameColumns(cells: readonly string[]): { names: string[]; naming: Naming } {
  const counts = new Map<string, number>();
  const names = cells.map((cell) => {
    const name = cell.trim();
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return name === "" || count === 1 ? name : `${name} (${count})`;
  });
  const hasDuplicates = [...counts].some(([name, count]) => name !== "" && count > 1);
  return { names, naming: { hasDuplicates, hasUnnamed: counts.has("") } };
}

function numberColumns(cells: readonly string[]): { names: string[]; naming: Naming } {
  return {
    names: cells.map((_, at) => String(at + 1)),
    naming: { hasDuplicates: false, hasUnnamed: false },
  };
}

function parseRows({ text, isWhole }: Head, delimiter: string): ParsedRow[] {
  const whole = isWhole ? text : text.slice(0, text.lastIndexOf("\n") + 1);
  const found = parse(whole, {
    bom: true,
    delimiter,
    info: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    to: ROWS_MAX + 50,
  }) as unknown as { readonly record: string[]; readonly info: Info }[];
  return found.map(({ record, info }) => ({ cells: record, line: info.lines }));
}

/** The number of cells of most rows. */
function usualWidth(rows: readonly ParsedRow[]): number {
  const counts = new Map<number, number>();
  for (const { cells } of rows) counts.set(cells.length, (counts.get(cells.length) ?? 0) + 1);
  return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0] ?? 0;
}

function sampleFile(path: string) {
  const facts = { inputPath: path, fileName: basename(path), filePath: path, size: 0 };
  return createMapperFile(facts, new RowTracker(), () => undefined, new AbortController().signal);
}

async function firstOf<Row>(chunks: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const chunk of chunks) {
    rows.push(...chunk);
    if (rows.length >= ROWS_MAX) break;
  }
  return rows.slice(0, ROWS_MAX);
}

async function workbookTable(path: string): Promise<SampleTable | null> {
  const rows = await firstOf(sampleFile(path).xlsx());
  const isHeader = (cells: readonly CellValue[]) =>
    cells.filter((cell) => typeof cell === "string").length >= 2 &&
    cells.every((cell) => cell === null || typeof cell === "string");
  const at = rows.findIndex(isHeader);
  const header = rows[at];
  if (header === undefined) return null;
  const { names, naming } = nameColumns(header.map((cell) => String(cell ?? "")));
  return {
    reader: { kind: "xlsx", headerRow: at + 1, naming },
    columns: names,
    rows: rows.slice(at + 1).map((cells) => header.map((_, column) => cellText(cells[column] ?? null))),
  };
}

function cellText(cell: CellValue): string {
  if (cell === null) return "";
  return typeof cell === "object" ? cell.local : String(cell);
}

async function jsonTable(path: string, head: string): Promise<SampleTable | null> {
  const file = sampleFile(path);
  const lines = head.trim().split("\n");
  if (lines.length > 1 && lines.slice(0, -1).every((line) => /^\s*\{.*\}\s*$/.test(line) || line.trim() === ""))
    return recordTable({ kind: "ndjson" }, await firstOf(file.ndjson()));
  const tables: SampleTable[] = [];
  for (const candidate of [...jsonLists(head), "$.*"]) {
    const items = await firstOf(file.json({ path: candidate }));
    const table = recordTable({ kind: "json", path: candidate }, items);
    if (table !== null && table.columns.length >= 2) tables.push(table);
  }
  return tables.find(hasReadings) ?? tables[0] ?? null;
}

function hasReadings(table: SampleTable): boolean {
  const { date, values } = sketchColumns(table);
  return date !== null && values.length > 0;
}

/** Paths of the lists of objects in the head of a document, in order. */
function jsonLists(head: string): string[] {
  const found = new Set<string>();
  /** For each open object and list: its path, up to the current field. */
  const open: { readonly isList: boolean; readonly path: string; field: string }[] = [];
  for (const [token] of head.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[{}[\]]/g)) {
    const around = open.at(-1);
    if (token === "}" || token === "]") open.pop();
    else if (token.endsWith(":")) {
      const name: unknown = JSON.parse(token.slice(0, -1));
      if (around !== undefined) around.field = `${around.path}${fieldStep(String(name))}`;
    } else if (token === "{" || token === "[") {
      const path = around === undefined ? "$" : around.isList ? `${around.path}[*]` : around.field;
      if (token === "{" && around?.isList === true) found.add(`${around.path}.*`);
      open.push({ isList: token === "[", path, field: path });
    }
  }
  return [...found];
}

function fieldStep(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

function recordTable(reader: SampleReader, items: readonly JsonItem[]): SampleTable | null {
  const records = items.map(({ value }) => flattened(value)).filter((record) => record.size > 0);
  return records.length === 0 ? null : tableOf(reader, records);
}

/** Fields of an object and of nested objects, by dotted names. */
function flattened(value: unknown, before = ""): Map<string, string> {
  const fields = new Map<string, string>();
  if (typeof value !== "object" || value === null || Array.isArray(value)) return fields;
  for (const [name, one] of Object.entries(value)) {
    if (typeof one === "object" && one !== null)
      for (const [inner, text] of flattened(one, `${before}${name}.`)) fields.set(inner, text);
    else fields.set(`${before}${name}`, one === null ? "" : String(one));
  }
  return fields;
}

async function xmlTable(path: string, head: string): Promise<SampleTable | null> {
  const counts = new Map<string, number>();
  for (const [, name = ""] of head.matchAll(/<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)[\s/>]/g))
    counts.set(name, (counts.get(name) ?? 0) + 1);
  const repeated = [...counts].filter(([, count]) => count > 1).map(([name]) => name);
  for (const element of repeated) {
    const rows = await firstOf(sampleFile(path).xml({ elements: element }));
    const table = tableOf({ kind: "xml", element }, rows.map(elementFields));
    if (table.columns.length >= 2) return table;
  }
  return null;
}

/** Attributes as `@name`, and the texts of children that hold nothing else. */
function elementFields(element: XmlElement): Map<string, string> {
  const fields = new Map(Object.entries(element.attributes).map(([name, text]) => [`@${name}`, text]));
  for (const child of element.children) if (child.children.length === 0) fields.set(child.name, child.text);
  return fields;
}

function tableOf(reader: SampleReader, records: readonly ReadonlyMap<string, string>[]): SampleTable {
  const columns = [...new Set(records.flatMap((record) => [...record.keys()]))];
  return {
    reader,
    columns,
    rows: records.map((record) => columns.map((column) => record.get(column) ?? "")),
  };
}

// Guesses the meaning of the columns of a sample. A person checks the guess; it is never used when real files are
// mapped.

export interface ValueColumn {
  readonly name: string;
  readonly decimal: "." | ",";
  /** Symbol of a known unit in the name, such as `kWh` of `Energy [kWh]`. */
  readonly unit: string | undefined;
}

export interface SketchedColumns {
  /** Columns that together make the date, with their format; `iso` for ISO 8601. */
  readonly date: {
    readonly names: readonly string[];
    readonly format: string;
    readonly hasDesignator: boolean;
    /** Another format that fits as well, with other dates: the sample does not decide between them. */
    readonly other?: string;
  } | null;
  /** Columns of numbers that change from row to row. */
  readonly values: readonly ValueColumn[];
  /** The column that names the meter or logger. */
  readonly source: string | null;
  /** The column that names the register or quantity, in a long layout. */
  readonly quantity: string | null;
  /** Texts in value columns that are not numbers. */
  readonly missing: readonly string[];
}

export function sketchColumns(table: SampleTable): SketchedColumns {
  const columns = table.columns.map((name, at) => ({
    name,
    texts: table.rows.map((row) => (row[at] ?? "").trim()),
  }));
  const date = dateOf(columns);
  const others = columns.filter(
    ({ name, texts }) => !(date?.names.includes(name) ?? false) && texts.some((text) => text !== ""),
  );
  const numeric = others.filter((column) => decimalOf(column.texts) !== null);
  const labels = others.filter((column) => !numeric.includes(column));
  const named = (pattern: RegExp, among: typeof others) => among.find(({ name }) => pattern.test(name))?.name ?? null;
  const source = named(SOURCE_NAME, labels) ?? named(SOURCE_NAME, numeric.filter(isIdentifier)) ?? null;
  const measured = numeric.filter(({ name }) => name !== source);
  const quantity = named(
    QUANTITY_NAME,
    labels.filter(({ name }) => name !== source),
  );
  const chosen =
    quantity === null ? measured : measured.filter(({ name }, at) => VALUE_NAME.test(name) || at === 0).slice(0, 1);
  const values = chosen.map(({ name, texts }) => ({
    name,
    decimal: decimalOf(texts) ?? ".",
    unit: unitOf(name),
  }));
  const missing = chosen.flatMap(({ texts }) => texts.filter((text) => !isNumber(text, decimalOf(texts) ?? ".")));
  return { date, values, source, quantity, missing: [...new Set(missing)] };
}

type Column = { readonly name: string; readonly texts: readonly string[] };

function dateOf(columns: readonly Column[]): SketchedColumns["date"] {
  for (const { name, texts } of columns) {
    const filled = texts.filter((text) => text !== "");
    if (filled.length === 0) continue;
    if (mostly(filled, (text) => text.length >= 16 && readIso(text)))
      return {
        names: [name],
        format: "iso",
        hasDesignator: filled.every((text) => /(?:Z|[+-]\d{2}:?\d{2})$/.test(text)),
      };
    const found = formatOf(filled, STAMPS);
    if (found !== undefined) return { names: [name], ...found, hasDesignator: false };
  }
  for (const { name, texts } of columns) {
    const filled = texts.filter((text) => text !== "");
    const found = filled.length === 0 ? undefined : formatOf(filled, DAYS);
    if (found === undefined) continue;
    const { format: day, other: otherDay } = found;
    for (const other of columns) {
      // A time alone is not a date: a day in front completes it.
      const stamps = other.texts.filter((text) => text !== "").map((text) => `2024-01-01 ${text}`);
      const time =
        other.name === name || stamps.length === 0
          ? undefined
          : TIMES.find((candidate) => fits(stamps, `yyyy-MM-dd ${candidate}`));
      if (time !== undefined)
        return {
          ...{ names: [name, other.name], format: `${day} ${time}`, hasDesignator: false },
          ...(otherDay === undefined ? {} : { other: `${otherDay} ${time}` }),
        };
    }
    return { names: [name], ...found, hasDesignator: false };
  }
  return null;
}

/** The format that most of the texts fit, and another one that as many fit with other dates. */
function formatOf(
  texts: readonly string[],
  candidates: readonly string[],
): { readonly format: string; readonly other?: string } | undefined {
  const fitting = candidates
    .filter((candidate) => fits(texts, candidate))
    .map((format) => ({ format, walls: texts.map(formatReader(format)) }))
    .map((one) => ({ ...one, count: one.walls.filter((wall) => !Number.isNaN(wall)).length }));
  const most = Math.max(...fitting.map(({ count }) => count));
  const [best, ...others] = fitting.filter(({ count }) => count === most);
  if (best === undefined) return undefined;
  const other = others.find(({ walls }) => walls.some((wall, at) => wall !== best.walls[at] && !Number.isNaN(wall)));
  return { format: best.format, ...(other === undefined ? {} : { other: other.format }) };
}

function fits(texts: readonly string[], format: string): boolean {
  const read = formatReader(format);
  return mostly(texts, (text) => !Number.isNaN(read(text)));
}

function mostly(texts: readonly string[], test: (text: string) => boolean): boolean {
  return texts.filter(test).length >= texts.length * SHARE;
}

/** The mark by which most of the texts are numbers; null when they are not numbers. */
function decimalOf(texts: readonly string[]): "." | "," | null {
  const filled = texts.filter((text) => /\d/.test(text));
  if (filled.length === 0 || filled.length < texts.length * 0.2) return null;
  for (const decimal of [".", ","] as const) if (mostly(filled, (text) => isNumber(text, decimal))) return decimal;
  return null;
}

function isNumber(text: string, decimal: "." | ","): boolean {
  try {
    readNumber(text, { decimal });
    return true;
  } catch {
    // The text is not a number with these marks.
    return false;
  }
}

/** Long whole numbers that vary in few rows are not measurements. */
function isIdentifier({ texts }: Column): boolean {
  return texts.every((text) => /^\d{4,}$/.test(text)) && new Set(texts).size <= Math.max(1, texts.length / 3);
}

function unitOf(name: string): string | undefined {
  const inBrackets = /[[(]\s*([^\])]+?)\s*[\])]/.exec(name)?.[1];
  const last = name.split(/[\s_]+/).at(-1);
  return [inBrackets, last]
    .flatMap((text) => (text === undefined ? [] : [findUnit(text)?.symbol]))
    .find((symbol) => symbol !== undefined);
}
