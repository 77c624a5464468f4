/** Rows of /data as the columns of a plot. */
import { AGGREGATE_FACTS, type Aggregated, usualAggregate } from "#wire/referentials/aggregates.ts";
import type { Granularity } from "./address.ts";
import { type Columns, ColumnsOfRows, dateText, type ValueName } from "./columns.ts";
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

/** From which the usual distance between values is known well enough. */
const DISTANCES = 1_000;

const [INSTANTANEOUS, CUMULATIVE] = [1, 3];

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

/** A variable that does not say is averaged, and so named: of energy, the average of a day is not its sum. */
export function aggregateFor(variable: Variable): Aggregated {
  return usualAggregate(variable) ?? "AVG";
}

/** Aggregates to ask /data for, so that each variable has its aggregate, and those with a band that too. */
export function aggregatesOf(variables: readonly Variable[], chosen: Aggregated | null): readonly Aggregated[] {
  const wanted = variables.map((one) => chosen ?? aggregateFor(one));
  return [...new Set(wanted.flatMap(bandedOf))];
}

export interface Series {
  readonly variable: Variable;
  readonly unitId: number;
  readonly isStep: boolean;
  /** Of the periods; null for values as stored. */
  readonly aggregate: Aggregated | null;
  /** Seconds since 1970, in order. */
  readonly times: Float64Array;
  /** Minutes that local times are ahead of UTC. */
  readonly offsets: Float64Array;
  /** NaN where there is none. */
  readonly values: Float64Array;
  /** Least and most of each period; null for values as stored, and for sums. */
  readonly band: { readonly least: Float64Array; readonly most: Float64Array } | null;
  /** Seconds for which a value holds, as far as that is known; 0 otherwise. */
  readonly length: number;
  /** Of another state or an earlier period, drawn beside the shown one. */
  readonly isOther?: boolean;
}

export interface Shape {
  readonly granularity: Granularity;
  readonly aggregate: Aggregated | null;
}

/** Takes rows of /data in any number of parts; of each variable they come in order of date. */
export class SeriesOfRows {
  readonly #variables: readonly Variable[];
  readonly #shape: Shape;
  readonly #columns: ReadonlyMap<number, ColumnsOfRows>;

  constructor(variables: readonly Variable[], shape: Shape) {
    this.#variables = variables;
    this.#shape = shape;
    this.#columns = new Map(variables.map((one) => [one.id, new ColumnsOfRows(namesOf(one, shape))]));
  }

  add(rows: readonly DataRow[]): void {
    for (const row of rows) this.#columns.get(row.variableId ?? 0)?.add(row);
  }

  /** In the order of the variables. */
  taken(): readonly Series[] {
    return this.#variables.map((variable) => {
      const columns = this.#columns.get(variable.id)?.taken() ?? new ColumnsOfRows([]).taken();
      return seriesOf(variable, columns, this.#shape);
    });
  }
}

/** With those of its band, behind it. */
function bandedOf(name: Aggregated): readonly Aggregated[] {
  return AGGREGATE_FACTS[name].hasBand ? [name, "MIN", "MAX"] : [name];
}

/** That of the value, then those of its band. */
function namesOf(variable: Variable, { granularity, aggregate }: Shape): readonly ValueName[] {
  if (granularity === "Raw") return ["rawValue"];
  const chosen = aggregate ?? aggregateFor(variable);
  return bandedOf(chosen).map((name) => AGGREGATE_FACTS[name].column);
}

function seriesOf(variable: Variable, { unitId, times, offsets, values }: Columns, shape: Shape): Series {
  const { granularity } = shape;
  const [name = "rawValue", least, most] = namesOf(variable, shape);
  const column = (one: ValueName) => values.get(one) ?? new Float64Array();
  const length = granularity === "Raw" ? (intervalOf(variable) ?? usualInterval(times)) : LENGTHS[granularity];
  return {
    ...{ variable, times, offsets },
    aggregate: granularity === "Raw" ? null : (shape.aggregate ?? aggregateFor(variable)),
    unitId: unitId ?? variable.unitId ?? 0,
    isStep: granularity !== "Raw" || ![INSTANTANEOUS, CUMULATIVE].includes(variable.quantityType ?? INSTANTANEOUS),
    values: column(name),
    band: least === undefined || most === undefined ? null : { least: column(least), most: column(most) },
    length: length / 1_000,
  };
}

/** As the hub writes it. */
export function dateAt({ times, offsets }: Series, at: number): string {
  return dateText(times[at] ?? 0, offsets[at] ?? 0);
}

/** Null where there is none. */
export function valueAt({ values }: Series, at: number): number | null {
  const value = values[at];
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** The place of a time in times that are in order: the last one before for a step, otherwise the nearest. */
export function placeAt(times: Float64Array, time: number, isStep: boolean): number {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((times[middle] ?? 0) <= time) low = middle;
    else high = middle - 1;
  }
  const [before, after] = [times[low] ?? 0, times[low + 1] ?? Number.POSITIVE_INFINITY];
  return !isStep && after - time < time - before ? low + 1 : low;
}

/** The value of a place holds at a time: a step for its length, another value as far as no gap is between. */
export function holdsAt({ times, isStep, length }: Series, at: number, time: number): boolean {
  const distance = time - (times[at] ?? Number.NaN);
  if (Number.isNaN(distance)) return false;
  return isStep ? distance >= 0 && (length === 0 || distance < length * GAP) : Math.abs(distance) <= length * GAP;
}

/** Values are missing after this one, or it is the last. */
export function isGapAfter({ times, length }: Series, at: number): boolean {
  const next = times[at + 1];
  return next === undefined || (length > 0 && next - (times[at] ?? 0) > length * GAP);
}

/** The middle one of the distances between values, or of a thousand of them, in milliseconds. */
function usualInterval(times: Float64Array): number {
  const every = Math.max(1, Math.floor(times.length / DISTANCES));
  const distances = new Float64Array(Math.max(0, Math.floor((times.length - 1) / every)));
  for (let at = 0; at < distances.length; at += 1)
    distances[at] = (times[at * every + 1] ?? 0) - (times[at * every] ?? 0);
  distances.sort();
  return (distances[distances.length >> 1] ?? 0) * 1_000;
}
