/**
 * Aggregates calculated by the calendar alone, apart from the code under test: each point is put under the
 * words of its local date.
 */

export interface Sample {
  readonly ms: number;
  readonly value: number;
}

export type Period = "Minute" | "Hour" | "Day" | "Week" | "Month" | "Year" | "All";

export interface Expected {
  readonly startMs: number;
  readonly sumValue: number;
  readonly minValue: number;
  readonly maxValue: number;
  readonly avgValue: number;
  readonly countValue: number;
  /** Of a sample; absent for a single value. */
  readonly varianceValue?: number;
  readonly stdevValue?: number;
}

/** In order of date. `fromMs`: where the window begins, for a period that is all of it. */
export function calculate(samples: readonly Sample[], period: Period, zone: string, fromMs: number | null): Expected[] {
  const groups = Map.groupBy(
    samples.toSorted((one, other) => one.ms - other.ms),
    ({ ms }) => wordsOf(ms, period, zone),
  );
  return [...groups.values()].map((group) => {
    const [first] = group;
    if (first === undefined) throw new Error("a group of nothing");
    const startMs = period === "All" ? (fromMs ?? first.ms) : startOf(first.ms, period, zone);
    return { startMs, ...valuesOf(group.map(({ value }) => value)) };
  });
}

/** Equal for the points of one period. The offset tells the two passes of a repeated hour apart. */
function wordsOf(ms: number, period: Period, zone: string): string {
  const { year, month, day, hour, minute, offset, weekOfYear, yearOfWeek } = localOf(ms, zone);
  switch (period) {
    case "All":
      return "";
    case "Year":
      return `${year}`;
    case "Month":
      return `${year}-${month}`;
    case "Week":
      return `${yearOfWeek} W${weekOfYear}`;
    case "Day":
      return `${year}-${month}-${day}`;
    case "Hour":
      return `${year}-${month}-${day} ${hour} ${offset}`;
    case "Minute":
      return `${year}-${month}-${day} ${hour}:${minute} ${offset}`;
  }
}

const MINUTE_MS = 60_000;
/** Coarse steps first; no change of the clocks is shorter than a quarter of an hour. */
const STEPS_MS = [1_440, 60, 15, 1].map((minutes) => minutes * MINUTE_MS);

/** Walks back through the instants for as long as they belong to the same period. */
function startOf(ms: number, period: Period, zone: string): number {
  const words = wordsOf(ms, period, zone);
  let start = Math.floor(ms / MINUTE_MS) * MINUTE_MS;
  for (const step of STEPS_MS) while (wordsOf(start - step, period, zone) === words) start -= step;
  return start;
}

function localOf(ms: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
}

function valuesOf(values: readonly number[]): Omit<Expected, "startMs"> {
  const total = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0);
  const count = values.length;
  const mean = total(values) / count;
  const variance = total(values.map((value) => (value - mean) ** 2)) / (count - 1);
  return {
    sumValue: total(values),
    minValue: values.toSorted((one, other) => one - other)[0] ?? Number.NaN,
    maxValue: values.toSorted((one, other) => other - one)[0] ?? Number.NaN,
    avgValue: mean,
    countValue: count,
    ...(count > 1 ? { varianceValue: variance, stdevValue: variance ** 0.5 } : {}),
  };
}
