/**
 * Functions over the points of one input. Each point of the input is a point of the result, so that what a function
 * needs before a window is a count of points; one that has no value there is NaN.
 */
import { AGGREGATED, type Granularity } from "#wire/index.ts";
import { Accumulator, bucketOf } from "../../../data/buckets.ts";
import type { Note, Row } from "./row-functions.ts";
import { commonVersion, MIXED, type Series } from "./series.ts";

/** Kind of an argument: points, a number without dates of its own, one of some words, or a unit. */
export type Parameter = "points" | "input" | "number" | "unit" | readonly string[];

export interface Given {
  /** By the position of the parameter. */
  readonly numbers: readonly (Row | undefined)[];
  readonly words: readonly (string | undefined)[];
  readonly zone: string;
  /** A point for which the function has no value, for its reason. */
  readonly note: Note;
}

export interface SeriesFunction {
  readonly parameters: readonly Parameter[];
  /** Arguments that cannot be left out. */
  readonly least: number;
  readonly reach: (inner: Reach, words: readonly (string | undefined)[]) => Reach;
  readonly apply: (series: Series, given: Given) => Series;
  /** Reason of the points that it notes. */
  readonly noted?: string;
}

const CALENDARS: readonly Calendar[] = ["Minute", "Hour", "Day", "Week", "Month", "Year"];
export const NO_REACH: Reach = { points: 0, granularities: [] };
const onePointMore = ({ points, granularities }: Reach): Reach => ({ points: points + 1, granularities });
const HOUR_MS = 3_600_000;
const TIME_UNITS_MS: Readonly<Record<string, number>> = {
  Second: 1_000,
  Minute: 60_000,
  Hour: HOUR_MS,
  Day: 24 * HOUR_MS,
};

/** From each point and the one before it; the first one has no result. */
function pairwise(of: (series: Series, at: number, given: Given) => number) {
  return (series: Series, given: Given): Series => {
    const values = series.values.map((_, at) => (at === 0 ? Number.NaN : of(series, at, given)));
    return { ...series, values };
  };
}

const differenceAt = ({ values }: Series, at: number): number => (values[at] ?? 0) - (values[at - 1] ?? 0);

/**
 * A counter that falls has rolled over, when it is known where, and when it has counted at most half of its range since
 * then; otherwise it was exchanged or reset.
 */
function consumptionAt(series: Series, at: number, { numbers, words, note }: Given): number {
  const difference = differenceAt(series, at);
  if (Number.isNaN(difference) || difference >= 0) return difference;
  const range = numbers[1]?.(at) ?? Number.NaN;
  const rolled = difference + range;
  if (rolled >= 0 && rolled <= range / 2) return rolled;
  if (words[2] === "FromZero") return series.values[at] ?? Number.NaN;
  note(at);
  return Number.NaN;
}

function rateAt(series: Series, at: number, { words }: Given): number {
  const lengthMs = (series.atMs[at] ?? 0) - (series.atMs[at - 1] ?? 0);
  return differenceAt(series, at) / (lengthMs / (TIME_UNITS_MS[words[1] ?? "Hour"] ?? HOUR_MS));
}

/** At the beginning of each period that has a value. */
function aggregated({ atMs, values, versions }: Series, { words, zone }: Given): Series {
  const granularity = granularityOf(words);
  const name = AGGREGATED.find((one) => one === words[2]) ?? "SUM";
  const found: { readonly ms: number; readonly value: number; readonly version: number }[] = [];
  let begin = 0;
  while (begin < atMs.length) {
    const { startMs, endMs } = bucketOf(atMs[begin] ?? 0, granularity, zone);
    const accumulator = new Accumulator();
    let end = begin;
    let isEmpty = true;
    let version = 0;
    for (; end < atMs.length && (atMs[end] ?? 0) < endMs; end += 1) {
      const value = values[end] ?? Number.NaN;
      if (Number.isNaN(value)) continue;
      isEmpty = false;
      accumulator.add(value, atMs[end] ?? 0);
      version = commonVersion(version, versions?.[end] ?? 0);
    }
    const [value = Number.NaN] = Object.values(accumulator.columns([name]));
    // A period without a value is a point nonetheless: `previous` counts them.
    found.push({ ms: startMs ?? 0, value: isEmpty || typeof value !== "number" ? Number.NaN : value, version });
    begin = end;
  }
  return {
    atMs: Float64Array.from(found, ({ ms }) => ms),
    values: Float64Array.from(found, ({ value }) => value),
    versions: versions === null ? null : Int32Array.from(found, ({ version }) => (version === MIXED ? 0 : version)),
  };
}

/** Sum since the beginning of the period. */
function cumulated(series: Series, { words, zone }: Given): Series {
  const granularity = granularityOf(words);
  const { atMs } = series;
  let endMs = Number.NEGATIVE_INFINITY;
  let sum = 0;
  const values = series.values.map((value, at) => {
    const ms = atMs[at] ?? 0;
    if (ms >= endMs) {
      endMs = bucketOf(ms, granularity, zone).endMs;
      sum = 0;
    }
    if (Number.isNaN(value)) return value;
    sum += value;
    return sum;
  });
  return { ...series, values };
}

function granularityOf(words: readonly (string | undefined)[]): Calendar {
  return CALENDARS.find((one) => one === words[1]) ?? "Day";
}

const wholePeriods = (inner: Reach, words: readonly (string | undefined)[]): Reach =>
  widest(inner, { points: 0, granularities: [granularityOf(words)] });
const same = (series: Series): Series => series;

/** The units of `convert`, and for how long `hold` holds, are of the evaluation itself. */
export const SERIES_FUNCTIONS: ReadonlyMap<string, SeriesFunction> = new Map<string, SeriesFunction>([
  ["convert", { parameters: ["input", "unit"], least: 2, reach: () => NO_REACH, apply: same }],
  ["hold", { parameters: ["points", "number"], least: 1, reach: onePointMore, apply: same }],
  [
    "previous",
    {
      parameters: ["points"],
      least: 1,
      reach: onePointMore,
      apply: pairwise(({ values }, at) => values[at - 1] ?? Number.NaN),
    },
  ],
  ["delta", { parameters: ["points"], least: 1, reach: onePointMore, apply: pairwise(differenceAt) }],
  [
    "rate",
    { parameters: ["points", Object.keys(TIME_UNITS_MS)], least: 1, reach: onePointMore, apply: pairwise(rateAt) },
  ],
  [
    "consumption",
    {
      parameters: ["points", "number", ["FromZero"]],
      least: 1,
      reach: onePointMore,
      apply: pairwise(consumptionAt),
      noted: "the counter fell (it was exchanged or reset)",
    },
  ],
  ["aggregate", { parameters: ["points", CALENDARS, AGGREGATED], least: 3, reach: wholePeriods, apply: aggregated }],
  ["cumulative", { parameters: ["points", CALENDARS], least: 2, reach: wholePeriods, apply: cumulated }],
]);

// The input that a term needs beside the points of the dates themselves.

type Calendar = Exclude<Granularity, "Raw" | "All">;

/** Of one input variable. */
export interface Reach {
  /**
   * Points before the window. So a changed point affects the outputs until as many later points of this input; where
   * there are fewer, all later outputs.
   */
  readonly points: number;
  /** Whole periods in the zone of the source. So a changed point affects the outputs of its whole period. */
  readonly granularities: readonly Calendar[];
}

export function widest(one: Reach, other: Reach): Reach {
  const both = new Set([...one.granularities, ...other.granularities]);
  return {
    points: Math.max(one.points, other.points),
    granularities: CALENDARS.filter((granularity) => both.has(granularity)),
  };
}
