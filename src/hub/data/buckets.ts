/**
 * Aggregates over calendar periods in a zone: days of 23 and 25 hours, months and years by the calendar of the zone.
 */
import { AGGREGATE_FACTS, type Aggregated, type DataRow, type Granularity } from "#wire/index.ts";
import { offsetMsAt } from "../time.ts";

export interface Bucket {
  /** Inclusive; null: open (Granularity=All). */
  readonly startMs: number | null;
  /** Exclusive. */
  readonly endMs: number;
}

type Span = Exclude<Granularity, "Raw" | "All">;

/** The period that holds an instant. */
export function bucketOf(ms: number, granularity: Span | "All", zone: string): Bucket {
  if (granularity === "All") return { startMs: null, endMs: Number.POSITIVE_INFINITY };
  if (granularity === "Minute" || granularity === "Hour") return clockBucket(ms, granularity, zone);
  const date = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDate();
  const first = firstDay(date, granularity);
  const next = first.add(LENGTHS[granularity]);
  const endMs = startOfDay(next, zone);
  if (ms < endMs) return { startMs: startOfDay(first, zone), endMs };
  // Clocks set back across midnight return to the previous day; a repeated time belongs to the day that had begun.
  return { startMs: endMs, endMs: startOfDay(next.add(LENGTHS[granularity]), zone) };
}

const LENGTHS = { Day: { days: 1 }, Week: { weeks: 1 }, Month: { months: 1 }, Year: { years: 1 } } as const;

function firstDay(date: Temporal.PlainDate, granularity: keyof typeof LENGTHS): Temporal.PlainDate {
  if (granularity === "Week") return date.subtract({ days: date.dayOfWeek - 1 });
  if (granularity === "Month") return date.with({ day: 1 });
  if (granularity === "Year") return date.with({ month: 1, day: 1 });
  return date;
}

function startOfDay(date: Temporal.PlainDate, zone: string): number {
  return date.toZonedDateTime(zone).epochMilliseconds;
}

/** Both passes of a repeated hour are separate hours. */
function clockBucket(ms: number, granularity: "Minute" | "Hour", zone: string): Bucket {
  const lengthMs = granularity === "Minute" ? 60_000 : 3_600_000;
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
  const offsetMs = at.offsetNanoseconds / 1_000_000;
  const startMs = Math.floor((ms + offsetMs) / lengthMs) * lengthMs - offsetMs;
  const endMs = startMs + lengthMs;
  // Clocks change at whole minutes.
  if (granularity === "Minute") return { startMs, endMs };
  if (offsetMsAt(startMs, zone) === offsetMs && offsetMsAt(endMs - 1, zone) === offsetMs) return { startMs, endMs };
  // Clocks that change by half an hour cut the hour in two.
  const since = at.add({ nanoseconds: 1 }).getTimeZoneTransition("previous")?.epochMilliseconds ?? startMs;
  const until = at.getTimeZoneTransition("next")?.epochMilliseconds ?? endMs;
  return { startMs: Math.max(startMs, since), endMs: Math.min(endMs, until) };
}

/** A longer period adds up these of shorter ones, for the aggregates of which `isOfParts` is true. */
export interface PeriodSums {
  readonly count: number;
  /** The sum is `sum` + `error`. */
  readonly sum: number;
  readonly error: number;
  readonly min: number;
  readonly max: number;
  /** Date of the first point. */
  readonly firstMs: number;
}

/**
 * Above this value, whose square has no double, sums use the smaller unit; a power of two, so that nothing is rounded.
 */
const HUGE = 1e150;
const SMALL_UNIT = 2 ** -600;

/**
 * Running aggregates of one period. Sums keep what their additions round off (Neumaier's method), so that the order of
 * points and sums of parts make no difference, or that of one last bit. Variance by Welford's method, of a sample
 * (n - 1), as databases' VAR and STDEV. A final result beyond the range of doubles (a sum of 2e308) is omitted, since
 * JSON has no number for it; intermediate results may exceed it.
 */
export class Accumulator {
  private unit = 1;
  private count = 0;
  private sum = 0;
  private error = 0;
  private min = Number.POSITIVE_INFINITY;
  private max = Number.NEGATIVE_INFINITY;
  private mean = 0;
  private squares = 0;
  earliestMs = Number.POSITIVE_INFINITY;

  add(value: number, atMs: number): void {
    if (this.unit === 1 && (value > HUGE || value < -HUGE)) this.useSmallUnit();
    const scaled = value * this.unit;
    this.count += 1;
    this.addToSum(scaled);
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    const delta = scaled - this.mean;
    this.mean += delta / this.count;
    this.squares += delta * (scaled - this.mean);
    this.earliestMs = Math.min(this.earliestMs, atMs);
  }

  /** Adds the points from `from` on that the bucket holds; returns the place of the first that it does not. */
  addWithin(bucket: Bucket, atMs: Float64Array, values: Float64Array, from: number): number {
    let at = from;
    for (; at < atMs.length; at += 1) {
      const ms = atMs[at] ?? 0;
      if (!holds(bucket, ms)) break;
      this.add(values[at] ?? 0, ms);
    }
    return at;
  }

  /** For aggregates of which `isOfParts` is true. */
  merge({ count, sum, error, min, max, firstMs }: PeriodSums): void {
    this.count += count;
    this.addToSum(sum * this.unit);
    this.error += error * this.unit;
    this.min = Math.min(this.min, min);
    this.max = Math.max(this.max, max);
    this.earliestMs = Math.min(this.earliestMs, firstMs);
  }

  /** Null for huge values, whose sum is in another unit. */
  sums(): PeriodSums | null {
    if (this.unit !== 1) return null;
    const { count, sum, error, min, max, earliestMs: firstMs } = this;
    return { count, sum, error, min, max, firstMs };
  }

  private addToSum(value: number): void {
    const sum = this.sum + value;
    this.error += Math.abs(this.sum) >= Math.abs(value) ? this.sum - sum + value : value - sum + this.sum;
    this.sum = sum;
  }

  private useSmallUnit(): void {
    this.unit = SMALL_UNIT;
    this.sum *= SMALL_UNIT;
    this.error *= SMALL_UNIT;
    this.mean *= SMALL_UNIT;
    this.squares *= SMALL_UNIT * SMALL_UNIT;
  }

  columns(aggregates: readonly Aggregated[]): Partial<DataRow> {
    const { unit, count } = this;
    const sum = this.sum + this.error;
    const variance = this.squares / (count - 1);
    const results: Readonly<Record<Aggregated, number>> = {
      SUM: sum / unit,
      MIN: this.min,
      MAX: this.max,
      AVG: sum / count / unit,
      COUNT: count,
      VAR: variance / unit / unit,
      STDEV: Math.sqrt(variance) / unit,
    };
    const row: Partial<Record<AggregateColumn, number>> = {};
    for (const name of aggregates) {
      const { column, pointsMin } = AGGREGATE_FACTS[name];
      if (count >= pointsMin && Number.isFinite(results[name])) row[column] = results[name];
    }
    return row;
  }
}

type AggregateColumn = (typeof AGGREGATE_FACTS)[Aggregated]["column"];

/** Days of ten years. */
const KEPT = 4_000;

/** The periods of one granularity and zone, each computed once. */
export class Buckets {
  readonly #granularity: Span | "All";
  readonly #zone: string;
  /** In order of date. */
  readonly #known: Bucket[] = [];

  constructor(granularity: Span | "All", zone: string) {
    this.#granularity = granularity;
    this.#zone = zone;
  }

  at(ms: number): Bucket {
    const known = this.#known;
    let low = 0;
    for (let high = known.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((known[middle]?.endMs ?? 0) <= ms) low = middle + 1;
      else high = middle;
    }
    const found = known[low];
    if (found !== undefined && holds(found, ms)) return found;
    const bucket = bucketOf(ms, this.#granularity, this.#zone);
    if (known.length < KEPT) known.splice(low, 0, bucket);
    return bucket;
  }
}

export function holds({ startMs, endMs }: Bucket, ms: number): boolean {
  return (startMs === null || ms >= startMs) && ms < endMs;
}
