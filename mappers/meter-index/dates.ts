/** The date of a row, from one column or from a date and a time. */
import { type CellValue, FileError, RowError, type Target, type TimeTools } from "headgate/mapper";
import type { Columns } from "./columns.ts";
import type { Settings } from "./settings.ts";

const DESIGNATOR = /(?:[Zz]|[+-]\d\d(?::?\d\d)?)\s*$/;
const HAS_TIME = /\d[Tt ]\s*\d?\d:\d\d/;
/** Days that a spreadsheet gives to a time without a day. */
const NO_DAY = /^(?:1899-12-3[01]|1900-01-0[01]|1904-01-01)T/;
const ISO_DAY = /^\d{4}-\d\d-\d\d$/;

/** Throws a `RowError`, and a `FileError` without a zone where one is needed. */
export function dateOf(
  cells: readonly CellValue[],
  columns: Columns,
  { timeZone, dst, dateFormat }: Settings,
  time: TimeTools,
  target: Target,
): Temporal.Instant {
  const column = columns.name("date");
  const cell = columns.cell(cells, "date");
  const day = dayText(cell, column);
  const clock = columns.has("time") ? clockText(columns.cell(cells, "time"), columns.name("time")) : "";
  const isTyped = typeof cell === "object" && cell !== null;
  const text = clock === "" ? day : `${day.replace(/T00:00:00$/, "")}${isTyped ? "T" : " "}${clock}`;
  const hasDesignator = HAS_TIME.test(text) && DESIGNATOR.test(text);
  if (timeZone === undefined && !hasDesignator)
    throw new FileError(`the date "${text}" has no designator, and no time zone is set`, {
      column,
      text,
      hint: "Add to the trigger's metadata the zone in which the file was written: `timeZone: Europe/Brussels`",
    });
  const isIso = isTyped || dateFormat === undefined;
  const zone = timeZone === undefined || (isIso && hasDesignator) ? timeZone : time.zone(timeZone, target);
  try {
    if (isIso) return time.iso(ISO_DAY.test(text) ? `${text}T00:00:00` : text, zone, dst);
    return time.local(text, dateFormat, zone ?? "UTC", dst);
  } catch (thrown) {
    if (!(thrown instanceof RowError)) throw thrown;
    const isOther = dateFormat === undefined && !/^\d{4}-/.test(text);
    const hint = isOther ? "Declare the format in the trigger's metadata: `dateFormat: dd/MM/yyyy`" : thrown.hint;
    throw new RowError(thrown.message, { column, text, ...(hint === undefined ? {} : { hint }) });
  }
}

function dayText(cell: CellValue, column: string): string {
  if (typeof cell === "object" && cell !== null) return cell.local;
  const text = String(cell ?? "").trim();
  if (text === "") throw new RowError(`${column} is empty`, { column });
  if (typeof cell !== "number") return text;
  throw new RowError(`${column} is the number ${text}, not a date`, {
    column,
    text,
    hint: "Give the cells of the column a date format in the spreadsheet program.",
  });
}

function clockText(cell: CellValue, column: string): string {
  if (typeof cell === "object" && cell !== null) {
    if (NO_DAY.test(cell.local)) return cell.local.slice(11);
    throw new RowError(`${column} is the date ${cell.local}, not a time`, { column, text: cell.local });
  }
  if (typeof cell !== "number")
    return String(cell ?? "")
      .trim()
      .replace(/^\d:/, "0$&");
  throw new RowError(`${column} is the number ${cell}, not a time`, {
    column,
    text: String(cell),
    hint: "Give the cells of the column a time format in the spreadsheet program.",
  });
}
