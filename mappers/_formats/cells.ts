/** Cells of text files and workbooks as texts. */
import { type CellValue, hasTypedDigits, RowError } from "headgate/mapper";

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

/** Workbooks are ZIP archives, whatever their name. */
export async function isArchive(file: { bytes(): AsyncIterable<Uint8Array> }): Promise<boolean> {
  for await (const bytes of file.bytes())
    return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
  return false;
}
