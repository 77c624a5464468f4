/** Reads ISO 8601 date-times by character, since this runs once a row. */

/** The result of `readIso`; each call fills the same object, to save an allocation a row. */
export interface IsoFields {
  /** Wall time as if it were UTC, in milliseconds. */
  wall: number;
  /** Offset of the designator in milliseconds, or NaN without one. */
  offset: number;
  /** The text was finer than a millisecond, and was cut to it. */
  finer: boolean;
}

export const iso: IsoFields = { wall: 0, offset: Number.NaN, finer: false };

const DAY_MS = 86_400_000;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

export function daysInMonth(year: number, month: number): number {
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return leap ? 29 : (DAYS[month - 1] ?? 0);
}

/**
 * Milliseconds of a wall time as if it were UTC, or NaN when there is no such time. `24:00:00` is the end of the day,
 * as earlier editions of ISO 8601 define it and loggers write it.
 */
export function wallOf(year: number, month: number, day: number, hour: number, minute: number, second: number): number {
  if (year < 100 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return Number.NaN;
  if (minute > 59 || second > 59 || hour > 24 || (hour === 24 && minute + second > 0)) return Number.NaN;
  return midnight(year, month, day) + hour * 3_600_000 + minute * 60_000 + second * 1000;
}

let midnightKey = 0;
let midnightMs = 0;
/** Consecutive rows share a day, so the latest day is cached. */
function midnight(year: number, month: number, day: number): number {
  const key = year * 10_000 + month * 100 + day;
  if (key !== midnightKey) {
    midnightKey = key;
    midnightMs = Date.UTC(year, month - 1, day);
  }
  return midnightMs;
}

/** Two digits at a position, or NaN. */
export function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** Milliseconds of the decimals of a second, cut; `iso.finer` says whether digits were cut. */
export function fractionMs(decimals: string): number {
  iso.finer = /[1-9]/.test(decimals.slice(3));
  return Number(decimals.slice(0, 3).padEnd(3, "0"));
}

/**
 * Fills `iso` from `yyyy-MM-ddTHH:mm[:ss[.fff…]][Z|±HH[:mm]]` (a blank in place of the T is accepted too). False when
 * the text does not match.
 */
export function readIso(text: string): boolean {
  const length = text.length;
  if (length < 16 || text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45 || text.charCodeAt(13) !== 58) return false;
  const separator = text.charCodeAt(10);
  if (separator !== 84 && separator !== 32 && separator !== 116) return false;
  let at = 16;
  let second = 0;
  let fraction = 0;
  iso.finer = false;
  if (text.charCodeAt(at) === 58) {
    second = twoDigits(text, at + 1);
    at += 3;
    const mark = text.charCodeAt(at);
    if (mark === 46 || mark === 44) {
      const end = digitsEnd(text, at + 1);
      if (end === at + 1) return false;
      fraction = fractionMs(text.slice(at + 1, end));
      at = end;
    }
  }
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  iso.wall =
    wallOf(year, twoDigits(text, 5), twoDigits(text, 8), twoDigits(text, 11), twoDigits(text, 14), second) + fraction;
  if (Number.isNaN(iso.wall) || !Number.isFinite(second)) return false;
  iso.offset = Number.NaN;
  return at === length || readDesignator(text, at);
}

function digitsEnd(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at += 1;
  return at;
}

function readDesignator(text: string, from: number): boolean {
  const at = text.charCodeAt(from) === 32 ? from + 1 : from;
  const sign = text.charCodeAt(at);
  if (sign === 90 || sign === 122) {
    iso.offset = 0;
    return text.length === at + 1;
  }
  if (sign !== 43 && sign !== 45) return false;
  const colon = text.charCodeAt(at + 3) === 58 ? 1 : 0;
  const minutesGiven = text.length > at + 3;
  const minutes = minutesGiven ? twoDigits(text, at + 3 + colon) : 0;
  const hours = twoDigits(text, at + 1);
  if (!(hours <= 18 && minutes <= 59)) return false;
  iso.offset = (sign === 45 ? -1 : 1) * (hours * 3_600_000 + minutes * 60_000);
  return text.length === at + (minutesGiven ? 5 + colon : 3);
}

let dayWritten = Number.NaN;
let dayText = "";
const TWO = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, "0"));

/** `2026-03-01T00:15:00Z`, with milliseconds only when they are not zero. */
export function writeIso(epochMs: number): string {
  const day = Math.floor(epochMs / DAY_MS);
  if (day !== dayWritten) {
    dayWritten = day;
    dayText = new Date(day * DAY_MS).toISOString().slice(0, 11);
  }
  const rest = epochMs - day * DAY_MS;
  const seconds = Math.floor(rest / 1000);
  const ms = rest - seconds * 1000;
  const hour = TWO[Math.floor(seconds / 3600)];
  const text = `${dayText}${hour}:${TWO[Math.floor(seconds / 60) % 60]}:${TWO[seconds % 60]}`;
  return ms === 0 ? `${text}Z` : `${text}.${String(ms).padStart(3, "0")}Z`;
}
