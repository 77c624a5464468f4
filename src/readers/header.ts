/** Names of columns from the rows of a header. */

import type { HeaderOptions } from "./contract.ts";
import { UnreadableError } from "./row-error.ts";

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
