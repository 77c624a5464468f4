/** The output of a script, checked by the rules of the specification (*Calculated variables*, *Errors*). */
import type { CalculationResult, ComputedRows, FailedCalculation } from "../engine.ts";
import { type GivenValue, givenValue, type Texts } from "./given-value.ts";
import { TagCells } from "./tag-cells.ts";

/** Reports of a script that are kept, and characters of each. */
const REPORTS_MAX = 100;
const REPORT_LENGTH_MAX = 2_000;
/** Bytes of UTF-8 that hold more than these characters. */
const REPORT_BYTES = 4 * (REPORT_LENGTH_MAX + 1);
/** Rows that are read at once, some milliseconds: the thread serves the calculations of all accounts. */
export const SLICE_ROWS = 1_000;
/** Seconds at the end of the year 9999: a date beyond it is in milliseconds by mistake. */
const LAST_SECOND = 253_402_300_799;
const SHAPE =
  "a list with `TimeSeries`, a data frame with Dates and Values (and Version and Tags where the script has them)";

export function failed(message: string): FailedCalculation {
  return { kind: "failed", message: cut(message) };
}

function cut(text: string): string {
  return text.length <= REPORT_LENGTH_MAX ? text : `${text.slice(0, REPORT_LENGTH_MAX)}…`;
}

/** `bytes` are what the prelude wrote; a script that wants to can write anything. */
export async function resultOf(bytes: Buffer, limits: { readonly outputRows: number }): Promise<CalculationResult> {
  let value: GivenValue;
  try {
    value = givenValue(bytes);
  } catch {
    return failed("the script's R gave no result that can be read");
  }
  const error = texts(item(value, "error"))[0] ?? null;
  const notes = texts(item(value, "notes")).map((note) => `warning of R, ${note}`);
  if (error !== null) return failed(errorWords(error, item(value, "line")));
  const rows = await rowsOf(item(value, "output"), limits.outputRows);
  if (typeof rows === "string") return failed(rows);
  return { ...rows, warnings: [...rows.warnings, ...notes.map(cut)] };
}

function item(value: GivenValue, name: string): GivenValue {
  return value?.type === "list" ? (value.items.get(name) ?? null) : null;
}

/** Only the first of many, and not all of long ones: both are cut before they are decoded. */
function texts(value: GivenValue): readonly string[] {
  return value?.type === "character" ? value.texts.first(REPORTS_MAX, REPORT_BYTES) : [];
}

function errorWords(error: string, line: GivenValue): string {
  const parsed = /^script:(\d+):(\d+): ([^\n]*)/.exec(error);
  if (parsed !== null) return `line ${parsed[1]}, column ${parsed[2]}: ${parsed[3]}`;
  const at = line?.type === "integer" ? (line.data[0] ?? 0) : 0;
  const hint = /differing number of rows/.test(error)
    ? "; Version and Tags must be the same length as Dates/Values"
    : "";
  return `${at > 0 ? `line ${at}: ` : ""}${error}${hint}`;
}

/** The rows, or why there are none. */
async function rowsOf(output: GivenValue, rowsMax: number): Promise<ComputedRows | string> {
  const given = wrongClass(item(output, "value"));
  if (given !== null) return `the last value of the script must be ${SHAPE}; it is of class ${given}`;
  const series = item(output, "series");
  const errors = texts(item(output, "reports")).map(cut);
  if (series === null) {
    const reports = errors.length === 0 ? "" : `; the script reports: ${errors.join("; ")}`;
    return `the script gave no TimeSeries: its last value must be ${SHAPE}${reports}`;
  }
  const kind = wrongClass(series);
  if (kind !== null) return `TimeSeries must be a data frame with Dates and Values; it is of class ${kind}`;
  const [dates, values] = [item(series, "Dates"), item(series, "Values")];
  const [versions, tags] = [item(series, "Version"), item(series, "Tags")];
  const fault =
    columnFault("Dates", dates, "whole numbers (UNIX seconds UTC), POSIXct or Date", true) ??
    columnFault("Values", values, "numbers", true) ??
    columnFault("Version", versions, "character (as.character, stringsAsFactors = FALSE)", false) ??
    columnFault("Tags", tags, "character, one JSON object a row", false);
  if (fault !== null) return fault;
  const columns = { dates: numbers(dates), values: numbers(values), versions: cells(versions), tags: cells(tags) };
  return lengthFault(columns, rowsMax) ?? dateFault(columns.dates) ?? presentRows(columns, errors);
}

interface Columns {
  readonly dates: Float64Array;
  readonly values: Float64Array;
  readonly versions: Texts | null;
  readonly tags: Texts | null;
}

/** Class of a value that is not what it should be. */
function wrongClass(value: GivenValue): string | null {
  return texts(item(value, "wrong"))[0] ?? null;
}

function columnFault(name: string, column: GivenValue, expected: string, isRequired: boolean): string | null {
  if (column === null) return isRequired ? `TimeSeries has no column ${name}` : null;
  const kind = wrongClass(column);
  return kind === null ? null : `column ${name} of TimeSeries must be ${expected}; it is of class ${kind}`;
}

function numbers(column: GivenValue): Float64Array {
  return column?.type === "double" ? column.data : new Float64Array(0);
}

function cells(column: GivenValue): Texts | null {
  return column?.type === "character" ? column.texts : null;
}

function lengthFault({ dates, values, versions, tags }: Columns, rowsMax: number): string | null {
  const count = dates.length;
  const other = (name: string, of: { readonly length: number } | null, as: string) =>
    of === null || of.length === count ? null : `${name} must be the same length as ${as}: ${of.length} and ${count}`;
  const fault =
    other("Values", values, "Dates") ??
    other("Version", versions, "Dates/Values") ??
    other("Tags", tags, "Dates/Values");
  if (fault !== null) return fault;
  return count <= rowsMax
    ? null
    : `the script gave ${count} rows, more than the ${rowsMax} of \`calculated.outputRows\``;
}

function dateFault(dates: Float64Array): string | null {
  const row = dates.findIndex((date) => !(Math.abs(date) <= LAST_SECOND));
  if (row < 0) return null;
  if (Number.isFinite(dates[row]))
    return `Dates must be UNIX seconds UTC: ${dates[row]} in row ${row + 1} is beyond the year 9999 (milliseconds?)`;
  return (
    `Dates has no date in row ${row + 1} (NA): integers of R end on 2038-01-19, so that later dates ` +
    "are numeric (as.numeric)"
  );
}

/** Leaves out the rows without a value. */
async function presentRows(columns: Columns, errors: readonly string[]): Promise<ComputedRows | string> {
  const count = columns.dates.length;
  const [atMs, values] = [new Float64Array(count), new Float64Array(count)];
  const versions: (string | null)[] = [];
  const tags: ReturnType<TagCells["tagsOf"]>[] = [];
  const tagCells = new TagCells();
  const [nextVersion, nextTags] = [columns.versions?.[Symbol.iterator](), columns.tags?.[Symbol.iterator]()];
  let kept = 0;
  for (let row = 0; row < count; row += 1) {
    if (row % SLICE_ROWS === SLICE_ROWS - 1) await new Promise<void>((resolve) => setImmediate(resolve));
    const [version, cell] = [nextVersion?.next().value, nextTags?.next().value];
    const value = columns.values[row] ?? Number.NaN;
    if (!Number.isFinite(value)) continue;
    atMs[kept] = Math.round((columns.dates[row] ?? 0) * 1000);
    values[kept] = value;
    if (nextVersion !== undefined) versions.push(version || null);
    if (nextTags !== undefined) tags.push(tagCells.tagsOf(cell ?? null, row + 1));
    if (tagCells.fault !== null) return tagCells.fault;
    kept += 1;
  }
  const without = count - kept;
  const words = `${without} of ${count} rows have no value (NA, NaN or infinite) and are left out`;
  return {
    kind: "computed",
    atMs: atMs.slice(0, kept),
    values: values.slice(0, kept),
    versions: nextVersion === undefined ? null : versions,
    tags: nextTags === undefined ? null : tags,
    errors,
    warnings: [...(without > 0 ? [words] : []), ...tagCells.warnings],
  };
}
