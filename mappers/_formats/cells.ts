/** Cells of text files and workbooks as texts. */
import { type CellValue, FileError, hasTypedDigits, type MapContext, RowError, z } from "headgate/mapper";

/** Whether a cell is text, or a number whose digits are certainly the typed ones. */
export function isText(cell: CellValue | undefined): boolean {
  if (typeof cell === "number") return hasTypedDigits(cell);
  return typeof cell !== "object" || cell === null;
}

/**
 * The text of a cell in a column of names. Throws a `RowError` when the spreadsheet may have changed the typed text.
 */
export function textOf(cell: CellValue | undefined, column: string): string {
  if (isText(cell)) return String(cell ?? "");
  const isDate = typeof cell === "object" && cell !== null;
  const text = isDate ? cell.local : String(cell);
  throw new RowError(
    isDate
      ? `${column} is the date ${text}, not a text`
      : `${column} is the number ${text}, of which the spreadsheet may have changed digits`,
    {
      column,
      text,
      hint: "Format the column as text in the spreadsheet program, and enter the value again.",
    },
  );
}

export const lineEnd = z
  .enum(["any", "required"])
  .default("any")
  .describe(
    "`required`: a file whose last line has no line end is refused, for files that always have one: without it they " +
      "may have been cut off within a value.",
  );

export const mixedDates = z
  .enum(["refuse", "allow"])
  .default("refuse")
  .describe(
    "Typed dates of which no day is after the 12th, beside texts such as 13/06/2026: a spreadsheet program that " +
      "reads the month first has swapped day and month of the typed ones. `refuse` the file, or `allow` it.",
  );

/** 13/06/2026 and 6.13.26: day and month as numbers, in an order that the text does not show. */
const NUMERIC = /^\d{1,2}[/.\- ]\d{1,2}[/.\- ]\d{2,4}(?!\d)/;
const LAST_MONTH = 12;

/** The kinds of the dates in one column of a workbook. */
export class DateKinds {
  #typed = 0;
  #latestDay = 0;
  #typedExample = "";
  #texts = 0;
  #numeric = 0;
  #textExample = "";

  /** `text` of a typed date begins with its day as yyyy-MM-dd. */
  note(text: string, isTyped: boolean): void {
    if (isTyped) {
      this.#typed += 1;
      this.#typedExample ||= text;
      this.#latestDay = Math.max(this.#latestDay, Number(/\d{4}-\d\d-(\d\d)/.exec(text)?.[1] ?? LAST_MONTH + 1));
      return;
    }
    if (!/\d/.test(text)) return;
    this.#texts += 1;
    if (!NUMERIC.test(text)) return;
    this.#numeric += 1;
    this.#textExample = text;
  }

  noteCell(cell: CellValue): void {
    if (typeof cell === "object" && cell !== null) this.note(cell.local, true);
    else this.note(String(cell ?? "").trim(), false);
  }

  /** Called after the last row. Throws a `FileError` where the typed dates may be swapped. */
  check(
    column: string,
    rule: z.output<typeof mixedDates>,
    finding: MapContext<unknown>["finding"],
    place: { readonly sheet?: string } = {},
  ): void {
    if (this.#typed === 0 || this.#texts === 0) return;
    if (rule === "allow" || this.#numeric === 0 || this.#latestDay > LAST_MONTH) {
      const message = `some dates of the column ${column} are typed, and others are texts`;
      finding({ kind: "mixedDates", message, count: this.#texts, attention: rule !== "allow" });
      return;
    }
    throw new FileError(
      `the column has ${this.#typed} typed dates, such as ${this.#typedExample.slice(0, 10)}, none of them after the ` +
        `12th of its month, and ${this.#numeric} texts, such as "${this.#textExample}": day and month of the typed ` +
        "ones may be swapped",
      {
        ...place,
        column,
        text: this.#textExample,
        hint:
          "A spreadsheet program reads texts as dates where they fit its own order, and leaves the others as texts: " +
          "map the file as it was before it was opened there. If the typed dates are right, set `mixedDates: allow`.",
      },
    );
  }
}

/** Workbooks are ZIP archives, whatever their name. */
export async function isArchive(file: { bytes(): AsyncIterable<Uint8Array> }): Promise<boolean> {
  for await (const bytes of file.bytes())
    return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
  return false;
}
