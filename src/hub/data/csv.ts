/** A table as CSV (RFC 4180): comma, point, dates with their offset. */
import { headOf, type NamedColumn } from "./columns.ts";
import type { TableRow } from "./table.ts";

export async function* csvTexts(
  columns: readonly NamedColumn[],
  rows: AsyncIterable<readonly TableRow[]>,
): AsyncGenerator<string> {
  yield `${["date", ...columns.map(headOf)].map(cell).join(",")}\r\n`;
  for await (const piece of rows) {
    let text = "";
    for (const { date, values } of piece) text += `${date},${values.map((value) => value ?? "").join(",")}\r\n`;
    yield text;
  }
}

/** A spreadsheet takes a text that begins like a formula for one; a mark before it makes it a text. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
