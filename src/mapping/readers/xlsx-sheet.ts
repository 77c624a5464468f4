/** Reads the rows of one sheet (ECMA-376, part 1, 18.3.1) from its XML. */

import { ownText } from "#core/own-copy.ts";
import type { CellValue } from "./contract.ts";
import { COLUMNS_MAX, SHEET_ROW_CELLS_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { serialDate, wallText } from "./serial-date.ts";
import { damagedPart, type PartHandler, unescapeText } from "./xlsx-part.ts";
import { type PlainElements, plainTextEnd } from "./xlsx-plain.ts";
import type { SharedStrings } from "./xlsx-strings.ts";

export interface ParsedRow {
  /** From 1, as the spreadsheet shows it. */
  readonly row: number;
  /** Cells from column A, without the empty ones at the end. */
  readonly cells: CellValue[];
}

/** The parts of a workbook that its cells refer to. */
export interface SheetBook {
  readonly strings: SharedStrings;
  readonly is1904: boolean;
  /** Format of a style that shows dates; undefined for any other. */
  dateFormat(style: number): string | undefined;
}

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

/**
 * Text for a formula whose result was never calculated by the program that wrote the file; a mapper that
 * expects a number there refuses the row.
 */
const NO_RESULT = "#NOT CALCULATED";

export class SheetHandler implements PartHandler, PlainElements {
  rows: ParsedRow[] = [];
  readonly end = "</row>";
  readonly #plainRows = new PlainSheetRows(this);
  readonly #sheet: string;
  readonly #book: SheetBook;
  #root: string | undefined;
  #isData = false;
  /** Open elements within the data. */
  #depth = 0;
  #row = 0;
  #cells: CellValue[] = [];
  #cellCount = 0;
  /** Column of the current cell, from 0. */
  #column = -1;
  #type = "n";
  #style = 0;
  #isFormula = false;
  #value: string | undefined;
  #takesText = false;
  #isPhonetic = false;

  constructor(sheet: string, book: SheetBook) {
    this.#sheet = sheet;
    this.#book = book;
  }

  drain(): ParsedRow[] {
    const { rows } = this;
    this.rows = [];
    return rows;
  }

  get isBetween(): boolean {
    return this.#isData && this.#depth === 0;
  }

  read(text: string, from: number): number {
    return this.#plainRows.read(text, from);
  }

  /** Adds a row that was read without the parser. */
  add(row: number, cells: CellValue[]): void {
    this.#row = row;
    if (cells.length > 0) this.rows.push({ row, cells });
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (this.#root === undefined) this.#enterRoot(name);
    else if (name === "sheetData") this.#isData = true;
    else if (this.#isData) this.#enter(name, attributes);
  }

  #enter(name: string, attributes: Readonly<Record<string, string>>): void {
    this.#depth += 1;
    if (name === "row") this.#enterRow(attributes);
    else if (name === "c") this.#enterCell(attributes);
    else if (name === "v") {
      this.#value = "";
      this.#takesText = true;
    } else if (name === "f") this.#isFormula = true;
    else if (name === "rPh") this.#isPhonetic = true;
    else if (name === "t" && !this.#isPhonetic) {
      // Each run of rich text has its own `t` element.
      this.#value ??= "";
      this.#takesText = true;
    }
  }

  text(text: string): void {
    if (this.#takesText) this.#value += text;
  }

  close(name: string): void {
    if (name === "sheetData") this.#isData = false;
    if (!this.#isData) return;
    this.#depth -= 1;
    if (name === "v" || name === "t") this.#takesText = false;
    else if (name === "rPh") this.#isPhonetic = false;
    else if (name === "c") this.#leaveCell();
    else if (name === "row") this.add(this.#row, this.#cells);
  }

  #enterRoot(name: string): void {
    this.#root = name;
    if (name !== "worksheet")
      throw new UnreadableError(
        name === "chartsheet"
          ? `the sheet "${this.#sheet}" is a chart, and has no rows`
          : `the sheet "${this.#sheet}" is not a worksheet but <${name}>`,
        { sheet: this.#sheet, hint: "The mapper has to name another sheet." },
      );
  }

  #enterRow({ r }: Readonly<Record<string, string>>): void {
    const row = r === undefined ? this.#row + 1 : Number(r);
    if (!Number.isInteger(row) || row < 1) throw this.#damaged(`a row has the number ${r}`);
    this.#row = row;
    this.#cells = [];
    this.#cellCount = 0;
    this.#column = -1;
  }

  #enterCell({ r, t = "n", s }: Readonly<Record<string, string>>): void {
    this.#column = r === undefined ? this.#column + 1 : columnOf(r);
    this.#cellCount += 1;
    if (!(this.#column >= 0 && this.#column < COLUMNS_MAX) || this.#cellCount > SHEET_ROW_CELLS_MAX)
      throw this.#damaged(`row ${this.#row} has a cell at ${r ?? `column ${this.#column + 1}`}`);
    this.#type = t;
    this.#style = s === undefined ? 0 : Number(s);
    this.#isFormula = false;
    this.#value = undefined;
    this.#takesText = false;
  }

  #leaveCell(): void {
    const text = this.#value;
    const noText = this.#isFormula && this.#type !== "str" ? NO_RESULT : null;
    put(this.#cells, this.#column, text === undefined ? noText : this.valueOf(this.#type, this.#style, text));
  }

  valueOf(type: string, style: number, text: string): CellValue {
    if (text === "") return null;
    switch (type) {
      case "s":
        return this.#book.strings.at(Number(text)) || null;
      case "str":
      case "inlineStr":
        return unescapeText(text);
      case "b":
        return text.trim() === "1" || text.trim() === "true";
      case "e":
        // An error such as #N/A stays visible as text, so that a mapper that expects a number there refuses
        // the row.
        return text;
      case "d":
        return wallText(text);
      default:
        return this.#number(text, style);
    }
  }

  #number(text: string, style: number): CellValue {
    const number = Number(text);
    // JavaScript converts blanks to 0.
    if (text.trim() === "") return null;
    if (!Number.isFinite(number)) return text;
    const format = this.#book.dateFormat(style);
    return format === undefined ? number : serialDate(number, format, this.#book.is1904);
  }

  #damaged(why: string): UnreadableError {
    return damagedPart(`the sheet "${this.#sheet}"`, why);
  }
}

/** Index of the column of a reference such as `AB12`, from 0; negative for an invalid reference. */
function columnOf(reference: string): number {
  let column = 0;
  for (let at = 0; at < reference.length; at += 1) {
    const letter = reference.charCodeAt(at) - 64;
    if (letter < 1 || letter > 26) break;
    column = column * 26 + letter;
  }
  return column - 1;
}

// Rows of a sheet in the form in which programs write nearly all of them, read without a parser of XML.

interface CellHead {
  /** From the end of the reference to the end of the tag. */
  readonly text: string;
  readonly type: string;
  readonly style: number;
  readonly isClosed: boolean;
}

interface RowTarget {
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
function put(cells: CellValue[], column: number, value: CellValue): void {
  if (value === null) return;
  while (cells.length < column) cells.push(null);
  cells[column] = value;
}
