/** Dates of workbooks as wall time, independent of the zone of this machine. */
import type { CellValue } from "./contract.ts";

const DAY_MS = 86_400_000;
/**
 * Serial of 1970-01-01 in workbooks that count from 1900, and the days by which serials from 1904 are behind.
 */
const EPOCH_SERIAL = 25_569;
const DAYS_1904 = 1462;

/** Formats of dates and times that a workbook identifies by number only (ECMA-376, part 1, 18.8.30). */
export const STANDARD_DATE_FORMATS: Readonly<Record<string, string>> = {
  14: "mm-dd-yy",
  15: "d-mmm-yy",
  16: "d-mmm",
  17: "mmm-yy",
  18: "h:mm AM/PM",
  19: "h:mm:ss AM/PM",
  20: "h:mm",
  21: "h:mm:ss",
  22: "m/d/yy h:mm",
  45: "mm:ss",
  46: "[h]:mm:ss",
  47: "mmss.0",
};

export function isDateFormat(format: string | undefined): boolean {
  if (format === undefined) return false;
  const marks = format.replace(/\[[^\]]*\]|"[^"]*"|\\.|[_*]./g, "");
  return (/[ymdhs]/i.test(marks) || /\[[hms]+\]/i.test(format)) && !/^general$/i.test(format);
}

/** The latest date: the series of a sheet mostly share theirs. */
const latest = { serial: Number.NaN, format: "", is1904: false, local: "" };

/**
 * Serials are days as doubles, and quarter hours that are added up in a sheet drift by milliseconds that the
 * sheet does not show: the result has whole seconds, unless the format shows fractions of them. A time alone
 * is on 1899-12-30.
 */
export function serialDate(serial: number, format: string, is1904: boolean): CellValue {
  if (serial === latest.serial && format === latest.format && is1904 === latest.is1904)
    return { kind: "date", local: latest.local };
  const ms = (serial - EPOCH_SERIAL + (is1904 ? DAYS_1904 : 0)) * DAY_MS;
  const step = /s[.,]0/i.test(format) ? 1 : 1000;
  const rounded = Math.round(ms / step) * step;
  if (Number.isNaN(rounded) || Math.abs(rounded) > 8.64e15) return "#DATE";
  const text = new Date(rounded).toISOString();
  const local = text.endsWith(".000Z") ? text.slice(0, 19) : text.slice(0, -1);
  Object.assign(latest, { serial, format, is1904, local });
  return { kind: "date", local };
}

/** Converts a date cell in ISO 8601 text; any other text is returned unchanged. */
export function wallText(text: string): CellValue {
  const match = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(:\d\d(?:\.\d{1,3})?)?)?$/.exec(text.trim());
  if (match === null) return text;
  const [, day, minute = "00:00", second = ":00"] = match;
  return { kind: "date", local: `${day}T${minute}${second}` };
}
