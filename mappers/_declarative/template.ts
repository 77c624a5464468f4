/** Templates such as `{meter}-{channel}`: texts in which names in braces stand for cells of the row or for facts of the file. */
import { type CellValue, RowError } from "headgate/mapper";
import type { Columns } from "./columns.ts";

export type Cells = readonly CellValue[];

type Part =
  | string
  | { readonly name: string /** Digits to fill up to with zeros at the left. */; readonly digits: number };

/** The parts of a template, or what is wrong with it. `{{` and `}}` are braces, `{name|0000}` has at least four digits. */
export function parseTemplate(template: string): readonly Part[] | string {
  const parts: Part[] = [];
  const pieces = template.matchAll(/\{\{|\}\}|\{([^{}]*)\}|[^{}]+|[{}]/g);
  for (const [piece, name] of pieces) {
    if (piece === "{" || piece === "}")
      return `it has a brace without its other half; write ${piece}${piece} for a brace as such`;
    if (name === undefined) parts.push(piece === "{{" ? "{" : piece === "}}" ? "}" : piece);
    else if (name.trim() === "") return "it has braces without a name inside";
    else {
      const [, before, zeros] = /^(.*)\|(0+)$/s.exec(name) ?? [];
      parts.push({ name: (before ?? name).trim(), digits: zeros?.length ?? 0 });
    }
  }
  return parts;
}

/** What templates of one file may name. */
export interface Scope {
  readonly columns: Columns;
  /** Named groups of patterns, and other facts of the file; they go before columns of the same name. */
  readonly facts: ReadonlyMap<string, string>;
}

export interface Template {
  /** Columns that it reads. */
  readonly uses: readonly number[];
  /** Throws a `RowError` for a cell that is no text. */
  read(cells: Cells): string;
}

/** Binds the names of a template to the columns of a file. Throws a `FileError` for a name that is nowhere. */
export function bindTemplate(template: string | number, scope: Scope): Template {
  const parsed = parseTemplate(String(template));
  const parts = typeof parsed === "string" ? [parsed] : parsed;
  const bound = parts.map((part) => {
    if (typeof part === "string") return part;
    const fact = scope.facts.get(part.name);
    return fact === undefined
      ? { at: scope.columns.find(part.name), digits: part.digits }
      : fact.padStart(part.digits, "0");
  });
  const uses = bound.flatMap((part) => (typeof part === "string" ? [] : [part.at]));
  const [only] = bound;
  if (bound.length === 1 && typeof only === "object" && only.digits === 0) {
    const { at } = only;
    const name = scope.columns.name(at);
    return { uses, read: (cells) => cellText(cells[at], name) };
  }
  if (uses.length === 0) {
    const constant = bound.join("");
    return { uses, read: () => constant };
  }
  return {
    uses,
    read(cells) {
      let text = "";
      for (const part of bound)
        text +=
          typeof part === "string"
            ? part
            : cellText(cells[part.at], scope.columns.name(part.at)).padStart(part.digits, "0");
      return text;
    },
  };
}

/** From here on a spreadsheet or a parser has rounded the last digits of a number. */
const DIGITS_LOST_FROM = 1e15;

/** A cell as text, trimmed; `="0123"`, by which exports keep spreadsheets from changing a number, is its inner text. */
export function cellText(cell: CellValue | undefined, column: string): string {
  if (typeof cell === "string") {
    const trimmed = cell.trim();
    return trimmed.startsWith('="') && trimmed.endsWith('"') ? trimmed.slice(2, -1) : trimmed;
  }
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "boolean") return String(cell);
  if (typeof cell === "number" && Number.isInteger(cell) && Math.abs(cell) < DIGITS_LOST_FROM)
    return String(cell);
  const text = typeof cell === "number" ? String(cell) : cell.local;
  throw new RowError(
    typeof cell === "number"
      ? `${column} is the number ${text}, of which digits may have been changed`
      : `${column} is the date ${text}, not a text`,
    { column, text, hint: "The sender has to write it as text." },
  );
}
