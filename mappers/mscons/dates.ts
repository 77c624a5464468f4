/** Dates of DTM segments by their format code (code list 2379). */
import { RowError, type TimeTools } from "headgate/mapper";

/** The value of DTM: an instant, or a period. Epoch milliseconds. */
export interface Moment {
  readonly from: number;
  /** End of a period; the same as `from` for an instant. */
  readonly to: number;
  /** For formats with days alone: end of the day that `to` begins. */
  readonly dayEnd?: number;
}

export interface Zones {
  /** Zone of dates without an offset; undefined when none is known. */
  readonly zone: string | undefined;
  readonly time: TimeTools;
  readonly policy?: "earlier" | "later";
}

const FORMATS: ReadonlyMap<string, string> = new Map([
  ["102", "yyyyMMdd"],
  ["203", "yyyyMMddHHmm"],
  ["204", "yyyyMMddHHmmss"],
]);
const PERIODS: ReadonlyMap<string, { readonly digits: number; readonly format: string }> = new Map([
  ["718", { digits: 8, format: "102" }],
  ["719", { digits: 12, format: "203" }],
]);

/**
 * The offset that a message declares (format 406, `+0100`; 805, hours) as a zone such as `+01:00`; undefined for
 * another format. Throws a `RowError`.
 */
export function declaredOffset(text: string, code: string): string | undefined {
  if (code !== "406" && code !== "805") return undefined;
  const [, sign = "", hours = "", minutes = "00"] =
    (code === "406" ? /^([+-])(\d\d)(\d\d)$/ : /^([+-]?)(\d{1,2})$/).exec(text) ?? [];
  if (hours === "" || Number(hours) > 14 || Number(minutes) > 59)
    throw new RowError(`"${text}" is not an offset ${code === "406" ? "such as +0100" : "in hours"}`, { text });
  return `${sign === "-" ? "-" : "+"}${hours.padStart(2, "0")}:${minutes}`;
}

/** Throws a `RowError`. */
export function readDate(text: string, code: string, zones: Zones): Moment {
  const period = PERIODS.get(code);
  if (period !== undefined) {
    const both = text.replace("-", "");
    const from = local(both.slice(0, period.digits), period.format, zones);
    const to = local(both.slice(period.digits), period.format, zones);
    return { from, to, ...(period.format === "102" ? dayEnd(both.slice(period.digits), zones) : {}) };
  }
  if (hasOffset(code)) {
    const at = withOffset(text, zones);
    return { from: at, to: at };
  }
  if (!FORMATS.has(code))
    throw new RowError(`the date format ${code === "" ? "is missing" : `${code} is not known`}`, {
      text,
      hint: "Known are 102, 203, 204, 303, 718 and 719.",
    });
  const at = local(text, code, zones);
  return { from: at, to: at, ...(code === "102" ? dayEnd(text, zones) : {}) };
}

/** Whether the offset is in the text. */
export function hasOffset(code: string): boolean {
  return code === "303";
}

/** 303: CCYYMMDDHHMMZZZ, where ZZZ is the offset of the time from UTC in hours, such as `+01`. */
function withOffset(text: string, { time }: Zones): number {
  const match = /^(\d{12})([+-]\d{2}(?:\d{2})?)$/.exec(text);
  if (match === null)
    throw new RowError(`"${text}" is not a date of the format 303, such as 202607010015+01`, {
      text,
      hint: text.includes("+")
        ? "Z and letters are not an offset."
        : "The + of the offset has to be written with the release character: ?+01.",
    });
  const [, wall = "", offset = ""] = match;
  const zone = `${offset.slice(0, 3)}:${offset.slice(3) || "00"}`;
  return time.local(wall, "yyyyMMddHHmm", zone).epochMilliseconds;
}

function local(text: string, code: string, { zone, time, policy }: Zones): number {
  if (zone === undefined)
    throw new RowError(`the date "${text}" has no offset, and no time zone is set`, {
      text,
      hint:
        "Add to the trigger's metadata the zone of such dates, for example `timeZone: Europe/Berlin`, " +
        "or `+01:00` for a market that has no daylight saving.",
    });
  const format = FORMATS.get(code) ?? "";
  return (code === "102" ? time.dayStart(text, format, zone) : time.local(text, format, zone, policy))
    .epochMilliseconds;
}

function dayEnd(text: string, { zone = "", time }: Zones): { readonly dayEnd: number } {
  const start = time.dayStart(text, "yyyyMMdd", zone);
  return { dayEnd: time.addMinutes(start, time.dayLength(text, "yyyyMMdd", zone)).epochMilliseconds };
}
