/** Aggregates over calendar periods in a zone: days of 23 and 25 hours, months and years as the calendar there has them. */
import type { Aggregate, DataRow, Granularity } from "../../wire/index.ts";
import { offsetMsAt } from "../time.ts";

export interface Bucket {
  /** Included; null: open (Granularity=All). */
  readonly startMs: number | null;
  /** Excluded. */
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
  // Clocks set back across midnight return to the day before; what comes twice belongs to the day that had begun.
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

/** Both passes of a repeated hour are hours of their own. */
function clockBucket(ms: number, granularity: "Minute" | "Hour", zone: string): Bucket {
  const lengthMs = granularity === "Minute" ? 60_000 : 3_600_000;
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
  const offsetMs = at.offsetNanoseconds / 1_000_000;
  const startMs = Math.floor((ms + offsetMs) / lengthMs) * lengthMs - offsetMs;
  const endMs = startMs + lengthMs;
  // Clocks change at whole minutes.
  if (granularity === "Minute") return { startMs, endMs };
  if (offsetMsAt(startMs, zone) === offsetMs && offsetMsAt(endMs - 1, zone) === offsetMs)
    return { startMs, endMs };
  // Clocks that change by half an hour cut the hour in two.
  const since = at.add({ nanoseconds: 1 }).getTimeZoneTransition("previous")?.epochMilliseconds ?? startMs;
  const until = at.getTimeZoneTransition("next")?.epochMilliseconds ?? endMs;
  return { startMs: Math.max(startMs, since), endMs: Math.min(endMs, until) };
}

type Aggregated = Exclude<Aggregate, "None">;

/** Running aggregates of one period. Variance by Welford's method, of a sample (n - 1), as databases' VAR and STDEV. */
export class Accumulator {
  private count = 0;
  private sum = 0;
  private min = Number.POSITIVE_INFINITY;
  private max = Number.NEGATIVE_INFINITY;
  private mean = 0;
  private squares = 0;
  earliestMs = Number.POSITIVE_INFINITY;

  add(value: number, atMs: number): void {
    this.count += 1;
    this.sum += value;
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    const delta = value - this.mean;
    this.mean += delta / this.count;
    this.squares += delta * (value - this.mean);
    this.earliestMs = Math.min(this.earliestMs, atMs);
  }

  columns(aggregates: readonly Aggregated[]): Partial<DataRow> {
    const variance = this.count > 1 ? this.squares / (this.count - 1) : undefined;
    const columns: Record<Aggregated, Partial<DataRow>> = {
      SUM: { sumValue: this.sum },
      MIN: { minValue: this.min },
      MAX: { maxValue: this.max },
      AVG: { avgValue: this.sum / this.count },
      COUNT: { countValue: this.count },
      VAR: variance === undefined ? {} : { varianceValue: variance },
      STDEV: variance === undefined ? {} : { stdevValue: Math.sqrt(variance) },
    };
    return Object.assign({}, ...aggregates.map((name) => columns[name]));
  }
}
