/** Reads the rows of one sheet (ECMA-376, part 1, 18.3.1) from its XML. */

import type { CellValue } from "./contract.ts";
import { COLUMNS_MAX, SHEET_ROW_CELLS_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { serialDate, wallText } from "./serial-date.ts";
import { damagedPart, type PartHandler, unescapeText } from "./xlsx-part.ts";
import type { PlainElements } from "./xlsx-plain.ts";
import { PlainSheetRows, put } from "./xlsx-plain-rows.ts";
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
