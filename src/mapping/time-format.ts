/** Formats of dates in Unicode letters (UTS #35): `dd/MM/yyyy HH:mm:ss`, text in single quotes, `h` with `a`. */

import { FixedFormat } from "./fixed-format.ts";
import { daysInMonth, fractionMs, wallOf } from "./iso-text.ts";
import { FileError } from "./readers/row-error.ts";

/**
 * Reads a text in one format: wall time as if it were UTC in milliseconds, NaN when the text does not fit. Sets
 * `iso.finer` for a text that is finer than a millisecond, and does not change it otherwise.
 */
export type FormatReader = (text: string) => number;

type Field =
  | "year"
  | "month"
  | "day"
  | "hour"
  | "half"
  | "minute"
  | "second"
  | "fraction"
  | "shortYear"
  | "monthName"
  | "yearDay";

const LETTERS: Readonly<Record<string, readonly [Field, string]>> = {
  yyyy: ["year", "\\d{4}"],
  uuuu: ["year", "\\d{4}"],
  yy: ["shortYear", "\\d{2}"],
  MM: ["month", "\\d{2}"],
  M: ["month", "\\d{1,2}"],
  MMM: ["monthName", "[A-Za-z]{3,9}\\.?"],
  MMMM: ["monthName", "[A-Za-z]{3,9}\\.?"],
  D: ["yearDay", "\\d{1,3}"],
  DDD: ["yearDay", "\\d{3}"],
  dd: ["day", "\\d{2}"],
  d: ["day", "\\d{1,2}"],
  HH: ["hour", "\\d{2}"],
  H: ["hour", "\\d{1,2}"],
  hh: ["hour", "\\d{2}"],
  h: ["hour", "\\d{1,2}"],
  a: ["half", "[AaPp]\\.?[Mm]\\.?"],
  mm: ["minute", "\\d{2}"],
  m: ["minute", "\\d{1,2}"],
  ss: ["second", "\\d{2}"],
  s: ["second", "\\d{1,2}"],
  S: ["fraction", "\\d"],
  SS: ["fraction", "\\d{2}"],
  SSS: ["fraction", "\\d{3}"],
  SSSSSS: ["fraction", "\\d{6}"],
  SSSSSSS: ["fraction", "\\d{7}"],
  SSSSSSSSS: ["fraction", "\\d{9}"],
};

interface Compiled {
  readonly read: FormatReader;
  /** Undefined for a format with a field of several widths, or without a year of four digits. */
  readonly fixed?: FixedFormat;
}

const compiled = new Map<string, Compiled>();

/** The reader of a format, made once. */
export function formatReader(format: string): FormatReader {
  return compiledOf(format).read;
}

/** As `formatReader`; undefined for a format that is refused. */
export function knownFormat(format: string): FormatReader | undefined {
  return acceptedOf(format)?.read;
}

/** The places of the fields, for a format in which each has one. Undefined also for a format that is refused. */
export function fixedFormat(format: string): FixedFormat | undefined {
  return acceptedOf(format)?.fixed;
}

function acceptedOf(format: string): Compiled | undefined {
  try {
    return compiledOf(format);
  } catch (thrown) {
    // The first row that is read by it reports the fault, with its place.
    if (thrown instanceof FileError) return undefined;
    throw thrown;
  }
}

function compiledOf(format: string): Compiled {
  const known = compiled.get(format);
  if (known !== undefined) return known;
  const made = compile(format);
  compiled.set(format, made);
  return made;
}

function compile(format: string): Compiled {
  const fields: Field[] = [];
  const fixed = new FixedFormat();
  let pattern = "";
  let isHalfDay = false;
  for (const [token] of format.matchAll(/'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+/g)) {
    const letters = LETTERS[token];
    if (letters !== undefined) {
      fields.push(letters[0]);
      if (token.startsWith("h")) isHalfDay = true;
      fixed.field(token, letters[0]);
      pattern += `(${letters[1]})`;
    } else if (/^[A-Za-z]/.test(token)) {
      throw new FileError(`the date format "${format}" has letters that are not known: ${token}`, {
        hint:
          "Use yyyy, MM, dd, HH, mm, ss, SSS, SSSSSS (or M, d, H, h with a, m, s, yy, MMM for English " +
          "months, D for the day of the year); quote other text as 'T'.",
      });
    } else {
      const text = token.startsWith("'") ? unquote(token) : token;
      fixed.text(text);
      pattern += RegExp.escape(text);
    }
  }
  const hasHalf = fields.includes("half");
  if (isHalfDay && !hasHalf)
    throw new FileError(`the date format "${format}" has an hour of the half day (h), and nothing says which half`, {
      hint: "Write HH or H for hours from 0 to 23; h needs a for AM and PM.",
    });
  const expression = new RegExp(`^${pattern}$`);
  const slots = new Map(fields.map((field, index) => [field, index + 1]));
  const hasMonth = slots.has("month") || slots.has("monthName");
  if (!slots.has("yearDay") && !(slots.has("day") && hasMonth))
    throw new FileError(`the date format "${format}" names no day or no month`);
  if (fixed.isFixed && fixed.hasYear) return { read: (text) => fixed.read(text), fixed };
  return {
    read(text) {
      const match = expression.exec(text);
      return match === null ? Number.NaN : fromMatch(match, slots);
    },
  };
}

function unquote(token: string): string {
  return token === "''" ? "'" : token.slice(1, -1).replaceAll("''", "'");
}

function fromMatch(match: RegExpExecArray, slots: ReadonlyMap<Field, number>): number {
  const part = (field: Field) => match[slots.get(field) ?? -1];
  const short = part("shortYear");
  const year = short === undefined ? Number(part("year")) : shortYear(Number(short));
  let hour = Number(part("hour") ?? 0);
  const half = part("half");
  if (half !== undefined) {
    if (hour < 1 || hour > 12) return Number.NaN;
    hour = (hour % 12) + (half.toLowerCase().startsWith("p") ? 12 : 0);
  }
  const decimals = part("fraction");
  const fraction = decimals === undefined ? 0 : fractionMs(decimals);
  const yearDay = part("yearDay");
  const monthName = part("monthName");
  const wall = wallOf(
    year,
    yearDay !== undefined ? 1 : monthName === undefined ? Number(part("month")) : monthOf(monthName),
    yearDay !== undefined ? 1 : Number(part("day")),
    hour,
    Number(part("minute") ?? 0),
    Number(part("second") ?? 0),
  );
  return wall + fraction + (yearDay === undefined ? 0 : yearDayMs(Number(yearDay), year));
}

const MONTHS = "january february march april may june july august september october november december".split(" ");

/** Month of an English name or its first letters; NaN when there is none. */
function monthOf(name: string): number {
  const letters = name.toLowerCase().replace(".", "");
  return MONTHS.findIndex((month) => month.startsWith(letters)) + 1 || Number.NaN;
}

/** Milliseconds from the first of January; NaN when the year has no such day. */
function yearDayMs(day: number, year: number): number {
  const days = 337 + daysInMonth(year, 2);
  return day >= 1 && day <= days ? (day - 1) * 86_400_000 : Number.NaN;
}

/** POSIX: 69 to 99 belong to the 20th century. */
function shortYear(year: number): number {
  return year >= 69 ? 1900 + year : 2000 + year;
}
