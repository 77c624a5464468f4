/**
 * Converts the date of a row to an instant: texts in one of several formats, typed cells of a workbook, serials and
 * epochs.
 */
import {
  type CellValue,
  type DstPolicy,
  FileError,
  type Reading,
  RowError,
  SOURCE_ZONE,
  type TimeTools,
} from "headgate/mapper";
import { joined } from "../_formats/patterns.ts";
import { inColumn } from "./faults.ts";
import { type DateSettings, durationMs, formatsOf, type Layout } from "./settings.ts";
import { bindTemplate, type Cells, cellText, type Scope, type Template } from "./template.ts";

export interface DateReader {
  /** Column of the date, for errors. */
  readonly column: string;
  /**
   * `series` separates rows of different series, for `byOrder`. Throws a `RowError`, or a `FileError` for a local time
   * without a zone.
   */
  read(cells: Cells, series: string): Reading["date"];
}

type Settings = Pick<Layout, "timeZone" | "dst" | "shift" | "midnight"> & { readonly date: DateSettings };

const clockFaults = new WeakSet<object>();

/** Whether a date was refused for no more than the change of the clock: rows without values may have it. */
export function isClockFault(thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && clockFaults.has(thrown);
}

/** The text of the date of a row, and whether it came from typed cells of a workbook. */
interface DateText {
  readonly column: string;
  read(cells: Cells): { readonly text: string; readonly isTyped: boolean; readonly isTypedDay?: boolean };
}

export function bindDate(time: TimeTools, settings: Settings, scope: Scope): DateReader {
  const source = bindText(settings.date, scope);
  const zoneOf = settings.timeZone === undefined ? undefined : bindTemplate(settings.timeZone, scope);
  const parse = parser(time, formatsOf(settings.date), settings.midnight === "endOfDay" ? parseEnd : parseAs);
  const shift = createShift(time, settings.shift);
  const ordered = settings.dst === "byOrder";
  const mayPass =
    settings.shift === undefined && settings.midnight === "startOfDay" && formatsOf(settings.date).includes("iso");
  let latestText: string | undefined;
  let latestZone: string | undefined;
  let latest: Temporal.Instant | Date = new Date(0);

  return {
    column: source.column,
    read(cells, series) {
      const { text, isTyped, isTypedDay = isTyped } = source.read(cells);
      scope.dates?.note(text, isTypedDay);
      if (mayPass && INSTANT.test(text)) return text;
      const zone = zoneName(zoneOf?.read(cells));
      // Rows of several series often share their date.
      if (text === latestText && zone === latestZone && !ordered) return latest;
      const policy: DstPolicy = settings.dst === "byOrder" ? { byOrder: series } : settings.dst;
      let found: Temporal.Instant | Date;
      try {
        found = shift(parse(text, zone, policy, isTyped), zone);
      } catch (thrown) {
        const fault = inColumn(thrown, source.column);
        const isDate = formatsOf(settings.date).some((format) => fits(time, format, text, zone));
        if (fault instanceof RowError && isDate) clockFaults.add(fault);
        throw fault;
      }
      latestText = text;
      latestZone = zone;
      latest = found;
      return found;
    },
  };
}

/**
 * Passed on unchanged: `emit` reads it faster. Days that some months lack are parsed here, for an error with column.
 */
const INSTANT = joined(
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])/,
  /[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?/,
  /(?:Z|[+-]\d\d:\d\d)$/,
);

const OFFSET_FROM_UTC = /^(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?$/;

/** Offsets in the spelling of exports, such as `UTC+1` and `GMT+01:00`, in the form `+01:00`. */
export function zoneName(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const match = OFFSET_FROM_UTC.exec(text);
  if (match === null) return text;
  const [, sign, hours = "", minutes = "00"] = match;
  return `${sign}${hours.padStart(2, "0")}:${minutes}`;
}

function bindText(date: DateSettings, scope: Scope): DateText {
  const extract = extractor(date.pattern);
  if (date.text !== undefined) {
    const template: Template = bindTemplate(date.text, scope);
    const column = template.uses.map(scope.columns.name).join(" and ") || "date";
    return { column, read: (cells) => ({ text: extract(template.read(cells)), isTyped: false }) };
  }
  const places = (date.columns ?? [date.column ?? 1]).map((reference) => scope.columns.find(reference));
  const column = places.map(scope.columns.name).join(" and ");
  const [only] = places;
  if (places.length === 1 && only !== undefined)
    return {
      column,
      read(cells) {
        const cell = cells[only];
        if (typeof cell === "string") return { text: extract(cell.trim()), isTyped: false };
        if (isSerial(cell)) return { text: cell.local, isTyped: true };
        return { text: extract(plainText(cell, column)), isTyped: false };
      },
    };
  return {
    column,
    read(cells) {
      const isTyped = places.some((at) => isSerial(cells[at]));
      const isTypedDay = isTyped && places.some((at) => isTypedDate(cells[at]));
      const parts = places.map((at) => partText(cells[at], scope.columns.name(at)));
      const text = parts.filter((part) => part !== "").join(" ");
      return { text: extract(text), isTyped, isTypedDay };
    },
  };
}

function isSerial(cell: CellValue | undefined): cell is Extract<CellValue, { readonly kind: "date" }> {
  return typeof cell === "object" && cell !== null;
}

/** Numbers as written, since they may be serials and epochs. */
function plainText(cell: CellValue | undefined, column: string): string {
  return typeof cell === "number" ? String(cell) : cellText(cell, column);
}

/** Days that a spreadsheet gives to a time without a day. */
const NO_DAY = /^(?:1899-12-3[01]|1900-01-0[01]|1904-01-01)T/;

function isTypedDate(cell: CellValue | undefined): boolean {
  return isSerial(cell) && !NO_DAY.test(cell.local);
}

/** One of several cells that make up a date: the day of a date at midnight, the time of a time without a day. */
function partText(cell: CellValue | undefined, column: string): string {
  if (!isSerial(cell)) return plainText(cell, column);
  if (cell.local.startsWith("1899-12-31T00:00:00")) return "24:00";
  if (NO_DAY.test(cell.local)) return cell.local.slice(11).replace(/:00$/, "");
  return cell.local.replace(/T00:00:00$/, "");
}

function extractor(pattern: string | undefined): (text: string) => string {
  if (pattern === undefined) return (text) => text;
  const expression = new RegExp(pattern, "u");
  return (text) => {
    const match = expression.exec(text);
    if (match === null) throw new RowError(`"${text.slice(0, 60)}" does not fit the pattern of the date`, { text });
    return (match[1] ?? match[0]).trim();
  };
}

type Parse = (text: string, zone: string | undefined, policy: DstPolicy, isTyped: boolean) => Temporal.Instant | Date;

function parser(time: TimeTools, formats: readonly string[], parseIn: typeof parseAs): Parse {
  const typed = formats.includes("iso") ? formats : ["iso", ...formats];
  return (text, zone, policy, isTyped) => {
    if (text === "") throw new RowError("the date is empty");
    const tried = isTyped ? typed : formats;
    if (tried.length > 1) refuseAmbiguous(time, tried, text, zone);
    for (const format of tried) {
      try {
        return parseIn(time, format, text, zone, policy);
      } catch (thrown) {
        if (!(thrown instanceof RowError)) throw thrown;
        // Of the faults of several formats, the one of the format that fits is the helpful one.
        if (tried.length === 1 || fits(time, format, text, zone)) throw thrown;
      }
    }
    throw new RowError(`"${text.slice(0, 60)}" is not a date in any of the formats ${tried.join(", ")}`, {
      text,
    });
  };
}

/** 03/04/2026 is a date both day first and month first: no row alone decides between the two formats. */
function refuseAmbiguous(time: TimeTools, formats: readonly string[], text: string, zone: string | undefined): void {
  let first: { readonly format: string; readonly ms: number } | undefined;
  for (const format of formats) {
    const ms = msIn(time, format, text, zone);
    if (ms === undefined) continue;
    first ??= { format, ms };
    if (ms !== first.ms)
      throw new RowError(
        `"${text.slice(0, 60)}" is a date in the format ${first.format} and another one in the format ${format}`,
        {
          text,
          hint: "Give `date.format` the one format of the file; files of the other take a trigger of their own.",
        },
      );
  }
}

/** Undefined where the text is not a date in the format. */
function msIn(time: TimeTools, format: string, text: string, zone: string | undefined): number | undefined {
  try {
    // Which zone it is makes no difference between formats.
    return epochMs(parseAs(time, format, text, zone === SOURCE_ZONE ? "UTC" : zone, "later"));
  } catch (thrown) {
    if (thrown instanceof RowError) return undefined;
    throw thrown;
  }
}

/** Whether the text is a date in the format, and daylight saving its only fault. */
function fits(time: TimeTools, format: string, text: string, zone: string | undefined): boolean {
  return msIn(time, format, text, zone) !== undefined;
}

const DAY_ALONE = /^\d{4}-\d\d-\d\d$/;
const DESIGNATOR = /(?:[Zz]|[+-]\d\d(?::?\d\d)?)$/;
const EPOCHS: ReadonlyMap<string, number> = new Map([
  ["unix", 1000],
  ["unixMs", 1],
]);
/** Day 0 of a spreadsheet's serials, as days before 1970; old Macintosh workbooks count from 1904. */
const SERIAL_ZERO_DAYS: ReadonlyMap<string, number> = new Map([
  ["serial", 25_569],
  ["serial1904", 24_107],
]);

/** Whether dates in the format are texts of `time.iso` or `time.local`, and not counts of days or seconds. */
export function isWritten(format: string): boolean {
  return !EPOCHS.has(format) && !SERIAL_ZERO_DAYS.has(format);
}

function parseAs(
  time: TimeTools,
  format: string,
  text: string,
  zone: string | undefined,
  policy: DstPolicy,
): Temporal.Instant | Date {
  if (format === "iso") {
    if (zone === undefined && !DESIGNATOR.test(text.slice(10))) throw noZone(text);
    return DAY_ALONE.test(text) && zone !== undefined
      ? time.local(text, "yyyy-MM-dd", zone, policy)
      : time.iso(text, zone, policy);
  }
  const factor = EPOCHS.get(format);
  if (factor !== undefined) return fromEpoch(time, text, factor);
  if (zone === undefined) throw noZone(text);
  const zeroDays = SERIAL_ZERO_DAYS.get(format);
  if (zeroDays !== undefined) return time.iso(serialWall(text, zeroDays), zone, policy);
  return time.local(text, format, zone, policy);
}

const HOUR_24 = /(?<!\d)24[:.hH]?00/;
const DAY_MS = 86_400_000;

/** Reads like `parseAs`, where 00:00 is the end of the day of its date. */
function parseEnd(
  time: TimeTools,
  format: string,
  text: string,
  zone: string | undefined,
  policy: DstPolicy,
): Temporal.Instant | Date {
  if (!isWritten(format) || DAY_ALONE.test(text)) return parseAs(time, format, text, zone, policy);
  const [designator = ""] = (format === "iso" && DESIGNATOR.exec(text.slice(10))) || [];
  const written = text.slice(0, text.length - designator.length);
  const wall = epochMs(parseAs(time, format, written, "UTC", "reject"));
  const hour = format.length === written.length ? written.slice(format.indexOf("HH")).slice(0, 2) : "";
  if (wall % DAY_MS !== 0 || hour === "24" || HOUR_24.test(written)) return parseAs(time, format, text, zone, policy);
  const end = new Date(wall + DAY_MS).toISOString().slice(0, -1);
  if (designator === "" && zone === undefined) throw noZone(text);
  return designator === "" ? time.iso(end, zone, policy) : time.iso(`${end}${designator}`);
}

/** Wall time of a serial in ISO 8601, to the second: sums of quarter hours drift by milliseconds. */
function serialWall(text: string, zeroDays: number): string {
  const serial = Number(text);
  if (!/^\d+(?:\.\d+)?(?:[eE]-?\d+)?$/.test(text) || serial > 3e6)
    throw new RowError(`"${text.slice(0, 60)}" is no serial of a spreadsheet`, { text });
  return new Date(Math.round((serial - zeroDays) * 86_400) * 1000).toISOString().slice(0, -1);
}

/** `time.iso` cuts decimals beyond the millisecond, as for other texts. */
function fromEpoch(time: TimeTools, text: string, factor: number): Temporal.Instant | Date {
  const decimals = factor === 1 ? /^(\d+)(\d{3})\.(\d+)$/.exec(text) : /^(\d+)()\.(\d{4,})$/.exec(text);
  const ms = Math.round(Number(text) * factor);
  if (decimals !== null && !Number.isNaN(new Date(ms).getTime())) {
    const [, seconds, milliseconds = "", rest = ""] = decimals;
    const second = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
    return time.iso(`${second}.${milliseconds}${rest}Z`);
  }
  if (!/^-?\d+(?:\.\d+)?$/.test(text) || Number.isNaN(new Date(ms).getTime()))
    throw new RowError(`"${text.slice(0, 60)}" is no count of ${factor === 1 ? "milliseconds" : "seconds"}`, {
      text,
    });
  return new Date(ms);
}

function noZone(text: string): Error {
  if (!/\d/.test(text)) return new RowError(`"${text.slice(0, 60)}" is not a date`, { text });
  return new FileError(`the date "${text.slice(0, 60)}" has no designator, and no time zone is set`, {
    text,
    hint:
      "Add to the trigger's metadata the zone in which the file was written, for example: `timeZone: " +
      "Europe/Brussels`",
  });
}

export type Shift = (date: Temporal.Instant | Date, zone: string | undefined) => Temporal.Instant | Date;

/** Days are calendar days of the zone, so that midnight stays midnight. */
export function createShift(time: TimeTools, duration: string | undefined): Shift {
  if (duration === undefined) return (date) => date;
  const ms = durationMs(duration);
  const days = duration.endsWith("d") ? Number(duration.slice(0, -1)) : undefined;
  return (date, zone) => {
    const instant = date instanceof Date ? Temporal.Instant.fromEpochMilliseconds(date.getTime()) : date;
    return days === undefined || zone === undefined
      ? time.addMinutes(instant, ms / 60_000)
      : time.addDays(instant, days, zone);
  };
}

export function epochMs(date: Reading["date"]): number {
  if (typeof date === "string") return Date.parse(date.replace(" ", "T"));
  return date instanceof Date ? date.getTime() : date.epochMilliseconds;
}
