/** Rows of a sheet in the form in which programs write nearly all of them, read without a parser of XML. */

import { ownText } from "#core/own-copy.ts";
import type { CellValue } from "./contract.ts";
import { COLUMNS_MAX, SHEET_ROW_CELLS_MAX } from "./limits.ts";
import { plainTextEnd } from "./xlsx-plain.ts";

const ROW = '<row r="';
const CELL = '<c r="';
const CELL_END = "</c>";
const ROW_END = "</row>";
/** Attributes of a row after its number. */
const ROW_HEAD = /"((?: [A-Za-z][\w.]*(?::[A-Za-z]\w*)?="[\w.: ]*")*)>/y;
/** Attributes of a cell after its reference: style and type, in any order. */
const CELL_HEAD = /"(?: s="(\d{1,6})")?(?: t="([A-Za-z]{1,9})")?(?: s="(\d{1,6})")?(\/?)>/y;
/** A formula, of which the cell holds the result; attributes in the order of the schema. */
const FORMULA =
  /<f(?: t="[A-Za-z]{1,9}")?(?: aca="[01]")?(?: ref="[A-Z\d:]{1,30}")?(?: ca="[01]")?(?: si="\d{1,9}")?(\/?)>/y;
const FORMULA_END = "</f>";
const TEXTS: readonly (readonly [string, string])[] = [
  ["<v>", "</v>"],
  ["<is><t>", "</t></is>"],
  ['<is><t xml:space="preserve">', "</t></is>"],
];

/** Different heads of cells at hand; there are as many as pairs of style and type. */
const CELL_HEADS_MAX = 256;

interface CellHead {
  /** From the end of the reference to the end of the tag. */
  readonly text: string;
  readonly type: string;
  readonly style: number;
  readonly isClosed: boolean;
}

export interface RowTarget {
  valueOf(type: string, style: number, text: string): CellValue;
  add(row: number, cells: CellValue[]): void;
}

export class PlainSheetRows {
  readonly #target: RowTarget;
  /** The attributes of the latest row, which mostly repeat; with the end of the tag. */
  #rowHead = "";
  /** The attributes of the latest cell of each column. */
  readonly #cellHeads: CellHead[] = [];
  readonly #heads = new Map<string, CellHead>();
  /** Place that was reached. */
  #at = 0;

  constructor(target: RowTarget) {
    this.#target = target;
  }

  /** As of `PlainElements`. */
  read(text: string, from: number): number {
    let done = from;
    while (this.#readRow(text, done)) done = this.#at;
    return done;
  }

  #readRow(text: string, from: number): boolean {
    if (!text.startsWith(ROW, from)) return false;
    this.#at = from + ROW.length;
    const row = this.#digits(text);
    if (row < 1 || !this.#passRowHead(text)) return false;
    const cells: CellValue[] = [];
    for (let count = 0; text.startsWith(CELL, this.#at); count += 1)
      if (count >= SHEET_ROW_CELLS_MAX || !this.#readCell(text, cells)) return false;
    if (!this.#pass(text, ROW_END)) return false;
    this.#target.add(row, cells);
    return true;
  }

  /** A whole number of up to nine digits; 0 for none, and for more. */
  #digits(text: string): number {
    const from = this.#at;
    let number = 0;
    let at = from;
    for (; at < text.length; at += 1) {
      const digit = text.charCodeAt(at) - 48;
      if (!(digit >= 0 && digit <= 9)) break;
      number = number * 10 + digit;
    }
    this.#at = at;
    return at - from > 9 ? 0 : number;
  }

  #pass(text: string, part: string): boolean {
    if (!text.startsWith(part, this.#at)) return false;
    this.#at += part.length;
    return true;
  }

  #passRowHead(text: string): boolean {
    if (this.#rowHead !== "" && this.#pass(text, this.#rowHead)) return true;
    ROW_HEAD.lastIndex = this.#at;
    const [head, attributes = ""] = ROW_HEAD.exec(text) ?? [];
    if (head === undefined) return false;
    const names = ["r", ...attributes.matchAll(/ ([\w.:]+)=/g).map(([, name = ""]) => name)];
    if (new Set(names).size < names.length) return false;
    this.#rowHead = ownText(head);
    this.#at += head.length;
    return true;
  }

  #readCell(text: string, cells: CellValue[]): boolean {
    this.#at += CELL.length;
    const column = this.#column(text);
    if (!(column >= 0 && column < COLUMNS_MAX) || this.#digits(text) < 1) return false;
    const head = this.#cellHead(text, column);
    if (head === undefined) return false;
    if (head.isClosed || this.#pass(text, CELL_END)) return true;
    if (text.startsWith("<f", this.#at) && !this.#passFormula(text)) return false;
    const form = TEXTS.find(([open]) => text.startsWith(open, this.#at));
    if (form === undefined) return false;
    const from = this.#at + form[0].length;
    const to = plainTextEnd(text, from);
    if (to === -1) return false;
    this.#at = to;
    if (!this.#pass(text, form[1]) || !this.#pass(text, CELL_END)) return false;
    put(cells, column, this.#target.valueOf(head.type, head.style, text.slice(from, to)));
    return true;
  }

  #passFormula(text: string): boolean {
    FORMULA.lastIndex = this.#at;
    const [head, slash] = FORMULA.exec(text) ?? [];
    if (head === undefined) return false;
    this.#at += head.length;
    if (slash === "/") return true;
    const to = plainTextEnd(text, this.#at);
    if (to === -1) return false;
    this.#at = to;
    return this.#pass(text, FORMULA_END);
  }

  /** From 0; -1 for none. */
  #column(text: string): number {
    let column = 0;
    for (; this.#at < text.length; this.#at += 1) {
      const letter = text.charCodeAt(this.#at) - 64;
      if (!(letter >= 1 && letter <= 26) || column > COLUMNS_MAX) break;
      column = column * 26 + letter;
    }
    return column - 1;
  }

  #cellHead(text: string, column: number): CellHead | undefined {
    const known = this.#cellHeads[column];
    if (known !== undefined && this.#pass(text, known.text)) return known;
    CELL_HEAD.lastIndex = this.#at;
    const [head, before, type = "n", after, slash] = CELL_HEAD.exec(text) ?? [];
    if (head === undefined || (before !== undefined && after !== undefined)) return undefined;
    this.#at += head.length;
    let found = this.#heads.get(head);
    if (found === undefined) {
      found = {
        text: ownText(head),
        type: ownText(type),
        style: Number(before ?? after ?? 0),
        isClosed: slash === "/",
      };
      if (this.#heads.size >= CELL_HEADS_MAX) this.#heads.clear();
      this.#heads.set(found.text, found);
    }
    this.#cellHeads[column] = found;
    return found;
  }
}

/** Puts a value into a row of cells; an empty one leaves the row as it is. */
export function put(cells: CellValue[], column: number, value: CellValue): void {
  if (value === null) return;
  while (cells.length < column) cells.push(null);
  cells[column] = value;
}
