/** Rows of /data as the columns of a plot. */
import type { Aggregate, Granularity } from "./address.ts";
import type { DataRow, Variable } from "./hub.ts";

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
/** By the numbers of GET /timePeriods. */
const PERIODS = [0, SECOND, 60 * SECOND, 3_600 * SECOND, DAY, 7 * DAY, 30.44 * DAY, 365.25 * DAY];
const LENGTHS: Readonly<Record<Exclude<Granularity, "Raw">, number>> = {
  Minute: 60 * SECOND,
  Hour: 3_600 * SECOND,
  Day: DAY,
  Week: 7 * DAY,
  Month: 30.44 * DAY,
  Year: 365.25 * DAY,
};
/** Of a variable that does not say. */
const INTERVAL_DEFAULT = 15 * 60 * SECOND;
/** A plot of more values than it has pixels shows no more. */
const RAW_VALUES_MAX = 3_000;
const PERIODS_MAX = 800;
/** The next value may be this much later than usual before the plot shows a gap: a month has up to 31 days. */
const GAP = 1.6;

const INTEGRATED = 2;
const [INSTANTANEOUS, CUMULATIVE] = [1, 3];

export const COLUMNS = {
  SUM: "sumValue",
  AVG: "avgValue",
  MIN: "minValue",
  MAX: "maxValue",
  COUNT: "countValue",
  VAR: "varianceValue",
  STDEV: "stdevValue",
} as const satisfies Record<Aggregate, keyof DataRow>;

export function intervalOf({ granularity, granularityTimeBase }: Variable): number | null {
  const unit = PERIODS[granularityTimeBase ?? 0] ?? 0;
  return granularity === null || granularity === undefined || unit === 0 ? null : granularity * unit;
}

/** The finest granularity that a plot of the period still shows. */
export function granularityFor(variables: readonly Variable[], lengthMs: number): Granularity {
  const finest = Math.min(...variables.map((one) => intervalOf(one) ?? INTERVAL_DEFAULT));
  if (lengthMs / finest <= RAW_VALUES_MAX) return "Raw";
  const fits = Object.entries(LENGTHS).find(([, ms]) => ms >= finest && lengthMs / ms <= PERIODS_MAX);
  return (fits?.[0] as Granularity | undefined) ?? "Year";
}

export function aggregateFor({ quantityType }: Variable): Aggregate {
  return quantityType === INTEGRATED ? "SUM" : "AVG";
}

/** Aggregates to ask /data for, so that each variable has its aggregate, and averages their band. */
export function aggregatesOf(variables: readonly Variable[], chosen: Aggregate | null): readonly Aggregate[] {
  const wanted = variables.map((one) => chosen ?? aggregateFor(one));
  return [...new Set(wanted.flatMap((one): Aggregate[] => (one === "AVG" ? ["AVG", "MIN", "MAX"] : [one])))];
}

export interface Series {
  readonly variable: Variable;
  readonly unitId: number;
  readonly isStep: boolean;
  readonly times: readonly number[];
  readonly dates: readonly string[];
  readonly values: readonly (number | null)[];
  /** Least and most of each period; null for values as stored, and for sums. */
  readonly band: { readonly least: readonly (number | null)[]; readonly most: readonly (number | null)[] } | null;
  /** Seconds for which a value holds, as far as that is known; 0 otherwise. */
  readonly length: number;
  /** Of another state or an earlier period, drawn beside the shown one. */
  readonly isOther?: boolean;
}

interface Question {
  readonly granularity: Granularity;
  readonly aggregate: Aggregate | null;
}

/** In the order of the variables; rows come in order of date. */
export function seriesOf(
  rows: readonly DataRow[],
  variables: readonly Variable[],
  { granularity, aggregate }: Question,
): readonly Series[] {
  const byVariable = Map.groupBy(rows, ({ variableId }) => variableId ?? 0);
  return variables.map((variable) => {
    const own = byVariable.get(variable.id) ?? [];
    const chosen = aggregate ?? aggregateFor(variable);
    const column = granularity === "Raw" ? "rawValue" : COLUMNS[chosen];
    const dates = own.map(({ date }) => date ?? "");
    const times = dates.map((date) => Date.parse(date) / 1_000);
    const hasBand = granularity !== "Raw" && chosen === "AVG";
    const length = granularity === "Raw" ? (intervalOf(variable) ?? usualInterval(times)) : LENGTHS[granularity];
    return {
      variable,
      unitId: own[0]?.unitId ?? variable.unitId ?? 0,
      isStep: granularity !== "Raw" || ![INSTANTANEOUS, CUMULATIVE].includes(variable.quantityType ?? INSTANTANEOUS),
      times,
      dates,
      values: own.map((row) => row[column] ?? null),
      band: hasBand
        ? { least: own.map((row) => row.minValue ?? null), most: own.map((row) => row.maxValue ?? null) }
        : null,
      length: length / 1_000,
    };
  });
}

/** Places after which values are missing, and the last one. */
export function endsOf({ times, length }: Series): readonly number[] {
  return times.flatMap((time, at) => {
    const next = times[at + 1];
    return next === undefined || (length > 0 && next - time > length * GAP) ? [at] : [];
  });
}

/** The middle one of the distances between values, in milliseconds. */
function usualInterval(times: readonly number[]): number {
  const distances = times
    .slice(1)
    .map((time, at) => time - (times[at] ?? 0))
    .sort((a, b) => a - b);
  return (distances[distances.length >> 1] ?? 0) * 1_000;
}
