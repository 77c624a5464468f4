/** A plan of a mapper for the columns of a file: positions, and readers of the bytes of cells. */
import type { PlainRows } from "../readers/plain-rows.ts";
import type { RowPlan } from "../row-plan.ts";
import { type ByteDates, byteDates } from "./byte-dates.ts";

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
