/** The output of a script, checked by the rules of the specification (*Calculated variables*, *Errors*). */
import type { CalculationResult, ComputedRows, FailedCalculation } from "../engine.ts";
import { TYPES } from "./values.ts";

/** The prelude writes fewer of each. */
const DEPTH_MAX = 8;
const ITEMS_MAX = 8;
const VALUES_MAX = 64;
const NAME_BYTES_MAX = 64;

/** Rows that warnings name. */
const NAMED_ROWS = 5;
/** Characters of one cell: what it holds can take thirty times its memory. */
const CELL_LENGTH_MAX = 10_000;
/** Tags of one output, where rows beside each other have different ones. */
const TAGS_MAX = 2_000_000;
/** The version of a row is said by its own column; input tags that a script passes on carry it too. */
const RESERVED = "version";

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

// The column Tags of a script: one JSON object a row.

type RowTags = Readonly<Record<string, string>> | null;

/** A cell that is no JSON object of simple values drops the tags of its row alone, and is said in a warning. */
class TagCells {
  #named: number[] = [];
  #bad = 0;
  #isAnyLong = false;
  #tags = 0;
  /** Rows often have the tags of the row before. */
  #last: { readonly text: string; readonly tags: RowTags | undefined } = { text: "", tags: null };

  /** `row` counts from 1. */
  tagsOf(cell: string | null, row: number): RowTags {
    const text = cell ?? "";
    if (text !== this.#last.text) {
      const isLong = text.length > CELL_LENGTH_MAX;
      this.#isAnyLong ||= isLong;
      this.#last = { text, tags: isLong ? undefined : parsed(text) };
      this.#tags += Object.keys(this.#last.tags ?? {}).length;
    }
    const { tags } = this.#last;
    if (tags !== undefined) return tags;
    this.#bad += 1;
    if (this.#bad <= NAMED_ROWS) this.#named.push(row);
    return null;
  }

  /** Why the output cannot be kept; null: it can. */
  get fault(): string | null {
    if (this.#tags <= TAGS_MAX) return null;
    return `the script gave more than ${TAGS_MAX} tags: give fewer rows, or fewer tags of each`;
  }

  get warnings(): readonly string[] {
    if (this.#bad === 0) return [];
    const others = this.#bad > NAMED_ROWS ? ` and ${this.#bad - NAMED_ROWS} others` : "";
    const long = this.#isAnyLong ? `, or longer than ${CELL_LENGTH_MAX} characters` : "";
    return [
      `Tags of ${this.#bad === 1 ? "row" : "rows"} ${this.#named.join(", ")}${others} are no JSON object with texts` +
        `${long}: the rows are stored without tags`,
    ];
  }
}

/** The types of the language do not know the third parameter yet. */
type ParseWithSource = (
  text: string,
  reviver: (key: string, value: unknown, place: { source?: string }) => unknown,
) => unknown;

/** Numbers stay as they are written: 1.10 is not 1.1. */
function asWritten(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  return typeof value === "number" ? (source ?? String(value)) : value;
}

/** Null without tags; undefined when the text is no object of simple values. */
function parsed(text: string): RowTags | undefined {
  if (text.trim() === "") return null;
  let value: unknown;
  try {
    value = (JSON.parse as ParseWithSource)(text, asWritten);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value).filter(([key, one]) => key !== RESERVED && one !== null);
  if (entries.some(([, one]) => typeof one === "object")) return undefined;
  if (entries.length === 0) return null;
  return Object.fromEntries(entries.map(([key, one]) => [key, String(one)]));
}

// Reads the values that a script's process answers. They can be any bytes, so nothing is built from them before its
// size is known: lists have the few items of the prelude, and texts stay bytes until the reader asks for them.

type GivenValue =
  | null
  | { readonly type: "double"; readonly data: Float64Array }
  | { readonly type: "integer" | "logical"; readonly data: Int32Array }
  | { readonly type: "character"; readonly texts: Texts }
  | { readonly type: "list"; readonly items: ReadonlyMap<string, GivenValue> };

/** A character vector of R that is still bytes. */
class Texts {
  readonly #sizes: Int32Array;
  readonly #bytes: Buffer;

  constructor(sizes: Int32Array, bytes: Buffer) {
    this.#sizes = sizes;
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#sizes.length;
  }

  /** The first `count`, of each the first `bytesMax` bytes; NA is "". */
  first(count: number, bytesMax: number): readonly string[] {
    let at = 0;
    return Array.from(this.#sizes.subarray(0, count), (size) => {
      const from = at;
      at += Math.max(size, 0);
      return this.#bytes.toString("utf8", from, Math.min(at, from + bytesMax));
    });
  }

  /** Each in turn; null where R has NA. */
  *[Symbol.iterator](): Generator<string | null, undefined> {
    let at = 0;
    for (const size of this.#sizes) {
      const from = at;
      at += Math.max(size, 0);
      yield size < 0 ? null : this.#bytes.toString("utf8", from, at);
    }
    return undefined;
  }
}

/** Bytes that are no value of the prelude. */
class NoValueError extends Error {}

export function givenValue(bytes: Buffer): GivenValue {
  const reader = new ValueReader(bytes);
  const value = reader.value(0);
  if (!reader.isAtEnd()) throw new NoValueError("more bytes than one value");
  return value;
}

class ValueReader {
  readonly #bytes: Buffer;
  #at = 0;
  #values = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  value(depth: number): GivenValue {
    this.#values += 1;
    if (depth > DEPTH_MAX || this.#values > VALUES_MAX) throw new NoValueError("more lists than the prelude writes");
    const type = this.#take(1)[0];
    if (type === TYPES.null) return null;
    if (type === TYPES.double) return { type: "double", data: new Float64Array(this.#copy(this.#count(8), 8)) };
    if (type === TYPES.integer) return { type: "integer", data: this.#integers() };
    if (type === TYPES.logical) return { type: "logical", data: this.#integers() };
    if (type === TYPES.character) return { type: "character", texts: this.#texts() };
    if (type === TYPES.list) return { type: "list", items: this.#items(depth) };
    throw new NoValueError(`unknown type ${type}`);
  }

  #items(depth: number): ReadonlyMap<string, GivenValue> {
    const names = this.#texts();
    if (names.length > ITEMS_MAX) throw new NoValueError("a list with more items than the prelude writes");
    return new Map(names.first(ITEMS_MAX, NAME_BYTES_MAX).map((name) => [name, this.value(depth + 1)]));
  }

  #integers(): Int32Array {
    return new Int32Array(this.#copy(this.#count(4), 4));
  }

  #texts(): Texts {
    const sizes = this.#integers();
    let total = 0;
    for (const size of sizes) total += Math.max(size, 0);
    return new Texts(sizes, this.#take(total));
  }

  /** A number of elements of `width` bytes each, which are all there. */
  #count(width: number): number {
    const count = this.#take(4).readInt32LE();
    if (count < 0 || count * width > this.#bytes.length - this.#at)
      throw new NoValueError("a length is beyond the end");
    return count;
  }

  #copy(count: number, width: number): ArrayBuffer {
    return Uint8Array.from(this.#take(count * width)).buffer;
  }

  #take(size: number): Buffer {
    const end = this.#at + size;
    if (end > this.#bytes.length) throw new NoValueError("the bytes end early");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
