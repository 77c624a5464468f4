/**
 * Names of columns from the rows of a header, and rows by these names: reading a column that is not there is an error,
 * and never a missing value.
 */

import { nearestName } from "#core/nearest-name.ts";
import type { HeaderOptions } from "./contract.ts";
import { FileError, UnreadableError } from "./row-error.ts";

export interface Header {
  /** Name of each column; empty for a column without a name. */
  readonly names: readonly string[];
  /** Line or row at which it begins. */
  readonly row: number;
  readonly sheet?: string | undefined;
}

/** Throws an `UnreadableError` for names that occur twice. */
export function readHeader(
  rows: readonly (readonly string[])[],
  options: HeaderOptions,
  place: { readonly row: number; readonly sheet?: string | undefined },
): Header {
  const width = Math.max(0, ...rows.map((row) => row.length));
  const filled = rows.map((row, nth) => (nth < rows.length - 1 ? fillFromLeft(row, width) : row));
  const names: string[] = [];
  const first = new Map<string, number>();
  for (let column = 0; column < width; column += 1) {
    const name = joinParts(filled.map((row) => (row[column] ?? "").trim()));
    const before = first.get(name);
    if (name === "" || before === undefined) {
      first.set(name, column);
      names.push(name);
    } else if (options.duplicates === "number") names.push(numbered(name, first, column));
    else throw repeated(name, before, column, place);
  }
  return { names, ...place };
}

function fillFromLeft(row: readonly string[], width: number): string[] {
  const filled: string[] = [];
  for (let column = 0; column < width; column += 1) {
    const cell = row[column] ?? "";
    filled.push(cell.trim() === "" ? (filled[column - 1] ?? "") : cell);
  }
  return filled;
}

function joinParts(parts: readonly string[]): string {
  return parts.filter((part, nth) => part !== "" && part !== parts[nth - 1]).join(" ");
}

function numbered(name: string, taken: Map<string, number>, column: number): string {
  for (let nth = 2; ; nth += 1) {
    const candidate = `${name} (${nth})`;
    if (taken.has(candidate)) continue;
    taken.set(candidate, column);
    return candidate;
  }
}

function repeated(
  name: string,
  before: number,
  column: number,
  { row, sheet }: Pick<Header, "row" | "sheet">,
): UnreadableError {
  return new UnreadableError(`the header names columns ${before + 1} and ${column + 1} both "${name}"`, {
    row,
    ...(sheet === undefined ? {} : { sheet }),
    column: name,
    hint:
      "It is unknown which of them counts. Rename one of them; " +
      'a mapper distinguishes them by `duplicates: "number"`, or by their place.',
  });
}

/** The fault of a row with content in a column without a name. */
export function unnamedFault(
  { row: headerRow, sheet }: Header,
  column: number,
  row: number,
  text: string,
): UnreadableError {
  return new UnreadableError(`column ${column + 1} has content, but has no name in the header (row ${headerRow})`, {
    row,
    ...(sheet === undefined ? {} : { sheet }),
    column: `column ${column + 1}`,
    text,
    hint: 'Name the column in the header; a mapper that does not need it leaves it out by `unnamed: "skip"`.',
  });
}

export interface NamedHeader {
  /** Empty for a column without a name. */
  readonly names: readonly string[];
  /** The words for it in errors. Default: `the header`. */
  readonly owner?: string | undefined;
  /** Where the names are in the file. */
  readonly row?: number | undefined;
  readonly sheet?: string | undefined;
}

/** Names that programs ask of any object, such as `then` of one that is awaited. No column is missed by them. */
const ASKED_OF_ALL: ReadonlySet<string> = new Set([
  ...["then", "toJSON", "constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty", "__proto__"],
  ...["asymmetricMatch", "nodeType", "$$typeof", "inspect", "href"],
]);
const NAMES_SHOWN = 12;
/** Headers of which the classes are kept, so that files of one kind have rows of one shape. */
const CLASSES_MAX = 64;

type RowClass = new () => Record<string, never>;

const classes = new Map<string, RowClass>();

/**
 * The class of the rows under a header. Each row sets all columns; `"name" in row` asks for a column that may be
 * missing.
 */
export function rowClass<Cell>(header: NamedHeader): new () => Record<string, Cell> {
  const key = JSON.stringify([header.names, header.owner, header.row, header.sheet]);
  const known = classes.get(key);
  if (known !== undefined) return known;
  function Row(this: object): void {}
  // Rows have no prototype of their own but this, so that a column may have any name. That it knows the names keeps
  // the proxy behind it out of the way when a row is filled.
  const columns = header.names.filter((name) => name !== "").map((name) => [name, { writable: true }] as const);
  Row.prototype = Object.create(absentColumns(header), Object.fromEntries(columns));
  const made = Row as unknown as RowClass;
  if (classes.size >= CLASSES_MAX) classes.clear();
  classes.set(key, made);
  return made;
}

/** One for all rows of a header: it is reached only by names that no row has. */
function absentColumns(header: NamedHeader): object {
  return new Proxy(Object.create(null) as object, {
    get(_, name) {
      if (typeof name === "symbol" || ASKED_OF_ALL.has(name) || name.startsWith("@@")) return undefined;
      throw absentColumn(name, header);
    },
  });
}

function absentColumn(name: string, { names, owner = "the header", row, sheet }: NamedHeader): FileError {
  const columns = names.filter((one) => one !== "");
  const near = columns.find((one) => plainOf(one) === plainOf(name)) ?? nearestName(name, columns);
  const more = columns.length - NAMES_SHOWN;
  const shown = columns.slice(0, NAMES_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return new FileError(`${owner} has no column ${JSON.stringify(name)}`, {
    ...(row === undefined ? {} : { row }),
    ...(sheet === undefined ? {} : { sheet }),
    column: name,
    hint:
      `${near === undefined ? "" : `Is ${JSON.stringify(near)} meant? `}The columns are: ${shown}. ` +
      "In code, `in` asks for a column that may be missing.",
  });
}

/** Without case and blanks. */
function plainOf(name: string): string {
  return name.toLowerCase().replace(/\s/g, "");
}
