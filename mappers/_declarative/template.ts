/**
 * Templates such as `{meter}-{channel}`: texts in which names in braces are replaced by cells of the row or by facts of
 * the file.
 */
import { type CellValue, hasTypedDigits, RowError } from "headgate/mapper";
import type { DateKinds } from "../_formats/cells.ts";
import type { Columns } from "./columns.ts";
import { bindTableCell, type Table } from "./tables.ts";
import { type Part, parseTemplate } from "./template-parts.ts";

export type Cells = readonly CellValue[];

/** Names that templates of one file may use. */
export interface Scope {
  readonly columns: Columns;
  /** Named groups of patterns, and other facts of the file; they have precedence over columns of the same name. */
  readonly facts: ReadonlyMap<string, string>;
  readonly table?: Table | undefined;
  /** Takes the dates of a column whose cells may be typed. */
  readonly dates?: DateKinds | undefined;
}

export interface Template {
  /** Columns that the template reads. */
  readonly uses: readonly number[];
  /** The column, when the template is a single cell. */
  readonly only?: number;
  /** The text, when it is the same for every row. */
  readonly constant?: string;
  /** The template with the facts of the file filled in: equal for templates that always give equal texts. */
  readonly source: string;
  /** Throws a `RowError` for a cell that is not text. */
  read(cells: Cells): string;
}

/** Binds the names of a template to the columns of a file. Throws a `FileError` for an unknown name. */
export function bindTemplate(template: string | number, scope: Scope): Template {
  const parsed = parseTemplate(String(template));
  const parts = typeof parsed === "string" ? [parsed] : parsed;
  const bound = parts.map((part) => (typeof part === "string" ? part : bindPart(part, scope)));
  const uses = bound.flatMap((part) => (typeof part === "string" ? [] : part.uses));
  const [first] = bound;
  if (bound.length === 1 && typeof first === "object") return first;
  if (bound.every((part) => typeof part === "string")) {
    const constant = bound.join("");
    return { uses, constant, source: JSON.stringify(constant), read: () => constant };
  }
  return {
    uses,
    source: JSON.stringify(bound.map((part) => (typeof part === "string" ? part : [part.source]))),
    read(cells) {
      let text = "";
      for (const part of bound) text += typeof part === "string" ? part : part.read(cells);
      return text;
    },
  };
}

/** The meaning of a name in braces: a fact, a cell of the table, a column. */
function bindPart({ name, digits }: Exclude<Part, string>, scope: Scope): Template | string {
  const fact = scope.facts.get(name);
  if (fact !== undefined) return fact.padStart(digits, "0");
  const found =
    bindTableCell(name, scope.table, (key) => bindTemplate(key, scope)) ??
    bindColumn(scope.columns.find(name), scope.columns);
  if (digits === 0) return found;
  return {
    uses: found.uses,
    source: `${found.source}|${digits}`,
    read: (cells) => found.read(cells).padStart(digits, "0"),
  };
}

function bindColumn(at: number, columns: Columns): Template {
  const name = columns.name(at);
  return { uses: [at], only: at, source: `{${at}}`, read: (cells) => cellText(cells[at], name) };
}

/** `'0123`: an apostrophe before a number, as spreadsheet programs take it for the sign of a text. */
const GUARDED_NUMBER = /^'\d[^']*$/;

/** A cell as text, trimmed; of `="0123"` and `'0123`, which keep spreadsheets from changing it, the number. */
export function cellText(cell: CellValue | undefined, column: string): string {
  if (typeof cell === "string") {
    const trimmed = cell.trim();
    if (GUARDED_NUMBER.test(trimmed)) return trimmed.slice(1);
    return trimmed.startsWith('="') && trimmed.endsWith('"') ? trimmed.slice(2, -1) : trimmed;
  }
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "boolean") return String(cell);
  if (typeof cell === "number" && hasTypedDigits(cell)) return String(cell);
  const text = typeof cell === "number" ? String(cell) : cell.local;
  throw new RowError(
    typeof cell === "number"
      ? `${column} is the number ${text}, of which digits may have been changed`
      : `${column} is the date ${text}, not a text`,
    { column, text, hint: "The sender has to write it as text." },
  );
}
