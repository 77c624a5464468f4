/** CSV in chunks of rows, as cells or by the names of the header. Rows know their line in the file. */

import { counted } from "#core/grouped-number.ts";
import type { CsvOptions } from "./contract.ts";
import { PlainLines } from "./csv-plain.ts";
import { csvRecords } from "./csv-records.ts";
import type { Input } from "./decode.ts";
import { type Header, readHeader, rowClass, unnamedFault } from "./header.ts";
import { type NamedColumns, PlainRows } from "./plain-rows.ts";
import type { RefuseRow, RowFault } from "./refuse.ts";
import { UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";

/** Rows as arrays of cells, each stamped with its line. */
export async function* csvCells(input: Input, options: CsvOptions): AsyncGenerator<string[][] | PlainRows<string[]>> {
  for await (const block of csvRecords(input, options)) {
    if (block instanceof PlainLines) yield new PlainRows(block, stampedCells);
    else yield block.cells.map((cells, nth) => stampedCells(cells, block.lines[nth] ?? 0));
  }
}

function stampedCells(cells: string[], line: number): string[] {
  stampPlace(cells, line);
  return cells;
}

/** Rows by the names of the header. */
export async function* csvRows(
  input: Input,
  options: CsvOptions & { readonly columns?: boolean | readonly string[] },
  refuse: RefuseRow,
): AsyncGenerator<Record<string, string>[] | PlainRows<Record<string, string>>> {
  const { headerRows = 1 } = options;
  const head: string[][] = [];
  let headLine = 0;
  let shape = typeof options.columns === "object" ? new RowShaper(givenHeader(options.columns), options) : undefined;
  const make = (record: string[], line: number) => {
    const row = shape?.row(record, line);
    if (shape === undefined || row === undefined) return undefined;
    stampPlace(row, line);
    const fault = shape.fault(record);
    if (fault === undefined) return row;
    refuse(row, fault);
    return undefined;
  };
  for await (const block of csvRecords(input, options)) {
    if (shape !== undefined && block instanceof PlainLines) {
      yield new PlainRows(block, make, shape.columns);
      continue;
    }
    const { cells, lines } = block instanceof PlainLines ? block.records() : block;
    const rows: Record<string, string>[] = [];
    for (let index = 0; index < cells.length; index += 1) {
      const record = cells[index] ?? [];
      const line = lines[index] ?? 0;
      if (shape === undefined) {
        if (head.push(record) === 1) headLine = line;
        if (head.length >= headerRows) shape = new RowShaper(readHeader(head, options, { row: headLine }), options);
        continue;
      }
      const row = make(record, line);
      if (row !== undefined) rows.push(row);
    }
    yield rows;
  }
  if (shape === undefined && head.length > 0)
    throw new UnreadableError(`the file ends within its header, which spans ${headerRows} rows`, {
      row: headLine,
    });
}

/** Line of a header that the file does not have. */
const NO_LINE = 0;

function givenHeader(names: readonly string[]): Header {
  const twice = names.find((name, at) => name === "" || names.indexOf(name) < at);
  if (twice === undefined && names.length > 0) return { names, row: NO_LINE };
  throw new TypeError(`csv: the columns need names that differ, not ${JSON.stringify(names)}`);
}

/** Makes rows of records. */
class RowShaper {
  readonly #header: Header;
  readonly #ragged: NonNullable<CsvOptions["ragged"]>;
  readonly #ignoresExtra: boolean;
  /** Indexes of the columns without a name, which must be empty. */
  readonly #unnamed: readonly number[];
  readonly #named: readonly number[];
  readonly #Row: new () => Record<string, string>;

  constructor(header: Header, options: CsvOptions) {
    const places = header.names.map((name, column) => ({ name, column }));
    this.#header = header;
    this.#ragged = options.ragged ?? "reject";
    this.#ignoresExtra = options.extraCells === "ignore";
    this.#Row = rowClass(
      header.row === NO_LINE ? { names: header.names, owner: "the list of the mapper's columns" } : header,
    );
    this.#named = places.filter(({ name }) => name !== "").map(({ column }) => column);
    this.#unnamed =
      options.unnamed === "skip" ? [] : places.filter(({ name }) => name === "").map(({ column }) => column);
  }

  get columns(): NamedColumns {
    return { names: this.#header.names, unnamed: this.#unnamed };
  }

  row(record: readonly string[], line: number): Record<string, string> {
    const { names } = this.#header;
    const row = new this.#Row();
    for (const column of this.#named) row[names[column] ?? ""] = record[column] ?? "";
    for (const column of this.#unnamed) {
      const text = record[column] ?? "";
      if (text.trim() !== "") throw unnamedFault(this.#header, column, line, text);
    }
    return row;
  }

  /** Returns why a row of this length is refused. */
  fault(record: readonly string[]): RowFault | undefined {
    const expected = this.#header.names.length;
    if (record.length === expected) return undefined;
    if (this.#ragged === "pad" && !record.slice(expected).some((cell) => cell.trim() !== "")) return undefined;
    if (this.#ignoresExtra && record.length > expected) return undefined;
    return {
      message:
        `the row has ${counted(record.length, "cell")} where ` +
        (this.#header.row === NO_LINE ? `${expected} columns are named` : `the header has ${expected}`),
      hint:
        record.length < expected
          ? "Cells are missing: was the file cut off here, or written only in part?"
          : "A cell that contains the delimiter must be quoted; " +
            "the setting of the mapper may also name another delimiter.",
    };
  }
}
