/** A plan of a mapper for the columns of a file: positions, and readers of the bytes of cells. */

import { byteDigits, type FixedFormat } from "../fixed-format.ts";
import { iso, wallOf } from "../iso-text.ts";
import type { PlainRows } from "../readers/plain-rows.ts";
import type { RowPlan } from "../row-plan.ts";
import { type FormatReader, fixedFormat, knownFormat } from "../time-format.ts";

export interface BytePlan {
  /** Number of cells of a row. */
  readonly width: number;
  readonly delimiter: number;
  readonly dates: ByteDates;
  readonly dateColumn: number;
  readonly zone: string | undefined;
  readonly isOrdered: boolean;
  readonly values: readonly number[];
  /** For rows of a day; undefined for others. */
  readonly day: ByteDay | undefined;
  /** Byte of the decimal mark. */
  readonly mark: number;
  readonly by: readonly number[];
  /** Columns that have to be empty, since they have no name. */
  readonly unnamed: readonly number[];
  readonly missing: readonly Uint8Array[];
  readonly countMissing: (cells: number) => void;
}

export interface ByteDay {
  /** Milliseconds from midnight to the date of each value, and the least and the most of them. */
  readonly after: Float64Array;
  readonly least: number;
  readonly most: number;
  /** Columns with the status of each value; empty where there are none. */
  readonly status: readonly number[];
}

/** Longest date that is read as a text, and dates that are kept: the series of a file mostly share theirs. */
const TEXT_MAX = 40;
const DATES_MAX = 4096;
const [COLON, HYPHEN, PLUS, POINT, TEE, BLANK, ZULU] = [58, 45, 43, 46, 84, 32, 90];
const SHORTEST = 16;
const ASCII_MAX = 127;
const MINUTE_MS = 60_000;

/** Undefined where the rows have to be taken one by one: the plan does not fit the file, or its format is not plain. */
export function bytePlan(plan: RowPlan, { lines, columns }: PlainRows<object>): BytePlan | undefined {
  const { date, values, by, decimal = ".", missing, day } = plan;
  const delimiter = lines.delimiter.charCodeAt(0);
  const width = columns?.names.length ?? plan.width;
  const dates = byteDates([date.format ?? "iso"].flat());
  if (lines.delimiter.length !== 1 || delimiter > ASCII_MAX || width === undefined || dates === undefined)
    return undefined;
  const places = (references: readonly (number | string)[]) =>
    references.map((one) => (typeof one === "number" ? one : (columns?.names.lastIndexOf(one) ?? -1)));
  const [dateColumn = -1] = places([date.column]);
  const found = { values: places(values), by: places(by) };
  const status = places(day?.status ?? []);
  const all = [dateColumn, ...found.values, ...found.by, ...status];
  if (all.some((at) => !(at >= 0 && at < width)) || values.length === 0) return undefined;
  if (day !== undefined && !fitsValues(day, values.length)) return undefined;
  return {
    ...{ width, delimiter, dates, dateColumn, zone: date.zone, isOrdered: date.byOrder === true },
    ...found,
    day: day === undefined ? undefined : dayOf(day.minutes, status),
    mark: decimal.charCodeAt(0),
    unnamed: columns?.unnamed ?? [],
    missing: (missing?.texts ?? []).map((text) => Buffer.from(text)),
    countMissing: missing?.count ?? (() => undefined),
  };
}

function fitsValues({ minutes, status = [] }: NonNullable<RowPlan["day"]>, values: number): boolean {
  return minutes.length === values && minutes.every(Number.isFinite) && [0, values].includes(status.length);
}

function dayOf(minutes: readonly number[], status: readonly number[]): ByteDay {
  const after = Float64Array.from(minutes, (one) => Math.round(one * MINUTE_MS));
  return { after, least: Math.min(...after), most: Math.max(...after), status };
}

// Dates read from the bytes of a cell, where they are of a plain kind.

interface ByteDates {
  /** Whether the latest date is a wall time, since it has no designator. */
  readonly isLocal: boolean;
  /**
   * Epoch milliseconds of the date between two places, or its wall time as if it were UTC. NaN for a cell that is not
   * plain: it may still be a date.
   */
  read(bytes: Uint8Array, from: number, to: number): number;
}

/** Undefined for formats that are refused; the first row that is read by them reports the fault. */
function byteDates(formats: readonly string[]): ByteDates | undefined {
  const [format] = formats;
  if (formats.length === 1 && format === "iso") return new IsoBytes();
  const fixed = formats.length === 1 ? fixedFormat(format ?? "") : undefined;
  if (fixed !== undefined) return new FormatBytes(fixed);
  const readers = formats.map(knownFormat).filter((read) => read !== undefined);
  return readers.length < formats.length || readers.length === 0 ? undefined : new TextDates(readers);
}

class FormatBytes implements ByteDates {
  readonly isLocal = true;
  readonly #format: FixedFormat;

  constructor(format: FixedFormat) {
    this.#format = format;
  }

  read(bytes: Uint8Array, from: number, to: number): number {
    return this.#format.readBytes(bytes, from, to);
  }
}

/** Fields of several widths, or several formats: dates are read as texts, each of them once. */
class TextDates implements ByteDates {
  readonly isLocal = true;
  readonly #readers: readonly FormatReader[];
  readonly #known = new Map<string, number>();

  constructor(readers: readonly FormatReader[]) {
    this.#readers = readers;
  }

  read(bytes: Uint8Array, from: number, to: number): number {
    if (to - from > TEXT_MAX) return Number.NaN;
    let text = "";
    for (let at = from; at < to; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte <= BLANK && (at === from || at === to - 1)) return Number.NaN;
      if (byte > ASCII_MAX) return Number.NaN;
      text += String.fromCharCode(byte);
    }
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (this.#known.size >= DATES_MAX) this.#known.clear();
    const wall = this.#wall(text);
    this.#known.set(text, wall);
    return wall;
  }

  #wall(text: string): number {
    let found = Number.NaN;
    for (const read of this.#readers) {
      iso.finer = false;
      const wall = read(text);
      // A date that is cut to the millisecond is noted by the mapper's own code.
      if (iso.finer || (!Number.isNaN(found) && !Number.isNaN(wall) && wall !== found)) return Number.NaN;
      if (!Number.isNaN(wall)) found = wall;
    }
    return found;
  }
}

/** `yyyy-MM-ddTHH:mm[:ss[.SSS]][Z|±HH:mm]`, with T or a blank. */
class IsoBytes implements ByteDates {
  isLocal = false;

  read(bytes: Uint8Array, from: number, to: number): number {
    if (to - from < SHORTEST || bytes[from + 4] !== HYPHEN || bytes[from + 7] !== HYPHEN || bytes[from + 13] !== COLON)
      return Number.NaN;
    const separator = bytes[from + 10];
    if (separator !== TEE && separator !== BLANK) return Number.NaN;
    let at = from + SHORTEST;
    let second = 0;
    let fraction = 0;
    if (at < to && bytes[at] === COLON) {
      if (at + 3 > to) return Number.NaN;
      second = byteDigits(bytes, at + 1);
      at += 3;
      if (at < to && bytes[at] === POINT) {
        const end = digitsEnd(bytes, at + 1, to);
        fraction = milliseconds(bytes, at + 1, end);
        at = end;
      }
    }
    const wall = wallOf(
      byteDigits(bytes, from) * 100 + byteDigits(bytes, from + 2),
      byteDigits(bytes, from + 5),
      byteDigits(bytes, from + 8),
      byteDigits(bytes, from + 11),
      byteDigits(bytes, from + 14),
      second,
    );
    this.isLocal = at === to;
    return wall + fraction - (at === to ? 0 : offsetMs(bytes, at, to));
  }
}

function digitsEnd(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && (bytes[at] ?? 0) >= 48 && (bytes[at] ?? 0) <= 57) at += 1;
  return at;
}

/** Of one to three decimals of a second; NaN of more, since they are cut. */
function milliseconds(bytes: Uint8Array, from: number, to: number): number {
  if (to === from || to > from + 3) return Number.NaN;
  let ms = 0;
  for (let place = 0; place < 3; place += 1) ms = ms * 10 + (from + place < to ? (bytes[from + place] ?? 0) - 48 : 0);
  return ms;
}

/** Of `Z` or `±HH:mm`; NaN of anything else. */
function offsetMs(bytes: Uint8Array, at: number, to: number): number {
  const sign = bytes[at];
  if (sign === ZULU) return to === at + 1 ? 0 : Number.NaN;
  if ((sign !== PLUS && sign !== HYPHEN) || to !== at + 6 || bytes[at + 3] !== COLON) return Number.NaN;
  const hours = byteDigits(bytes, at + 1);
  const minutes = byteDigits(bytes, at + 4);
  if (!(hours <= 17 && minutes <= 59)) return Number.NaN;
  return (sign === PLUS ? 1 : -1) * (hours * 3_600_000 + minutes * 60_000);
}
