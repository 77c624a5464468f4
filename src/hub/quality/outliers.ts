/**
 * Values far from what is usual for a variable: the median of its values, of the same hour of the week where there is
 * enough history, and robust standard deviations from it (1.4826 × the median of the absolute deviations).
 */
import { offsetMsAt } from "../time.ts";

export interface Outlier {
  readonly atMs: number;
  readonly value: number;
  readonly usual: number;
  readonly deviations: number;
}

/** Points of which one judgement is made; memory holds that many. */
export const HISTORY_POINTS = 400_000;
/** Fewer values are no history. */
const HISTORY_MIN = 24;
/** Hours of the week are judged apart from so much history on, and where an hour has so many values. */
const WEEKS_MIN = 4;
const HOUR_VALUES_MIN = 8;
/**
 * Share of the deviation of the whole history that one of an hour of the week never falls below: in hours that are
 * always alike the smallest difference would be an outlier.
 */
const DEVIATION_SHARE = 0.25;

const HOUR_MS = 3_600_000;
const WEEK_HOURS = 168;
const MAD_TO_DEVIATION = 1.4826;
const MEAN_TO_DEVIATION = 1.2533;

interface Usual {
  readonly median: number;
  readonly deviation: number;
}

/** Columns in order of date. `stepMs`: null where points are a day or more apart, or the step is unknown. */
export function outliersOf(
  atMs: Float64Array,
  values: Float64Array,
  { stepMs, zone, deviations }: { readonly stepMs: number | null; readonly zone: string; readonly deviations: number },
): readonly Outlier[] {
  if (values.length < HISTORY_MIN) return [];
  const whole = usualOf(Float64Array.from(values));
  const spanMs = (atMs.at(-1) ?? 0) - (atMs[0] ?? 0);
  const isWeekly = stepMs !== null && stepMs <= HOUR_MS && spanMs >= WEEKS_MIN * WEEK_HOURS * HOUR_MS;
  const hours = isWeekly ? hoursOfWeek(atMs, zone) : null;
  const usual = hours === null ? [] : usualByHour(values, hours, whole);
  const found: Outlier[] = [];
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    const { median, deviation } = usual[hours?.[index] ?? 0] ?? whole;
    const distance = Math.abs(value - median);
    if (deviation > 0 && distance > deviations * deviation)
      found.push({ atMs: atMs[index] ?? 0, value, usual: median, deviations: distance / deviation });
  }
  return found;
}

function usualByHour(values: Float64Array, hours: Uint8Array, whole: Usual): readonly Usual[] {
  const ends = new Uint32Array(WEEK_HOURS);
  for (const hour of hours) ends[hour] = (ends[hour] ?? 0) + 1;
  for (let hour = 1; hour < WEEK_HOURS; hour += 1) ends[hour] = (ends[hour] ?? 0) + (ends[hour - 1] ?? 0);
  const sorted = new Float64Array(values.length);
  const free = Uint32Array.from(ends);
  for (let index = values.length - 1; index >= 0; index -= 1) {
    const hour = hours[index] ?? 0;
    const place = (free[hour] ?? 0) - 1;
    free[hour] = place;
    sorted[place] = values[index] ?? 0;
  }
  return Array.from(ends, (end, hour) => {
    const group = sorted.subarray(hour === 0 ? 0 : ends[hour - 1], end);
    if (group.length < HOUR_VALUES_MIN) return whole;
    const { median, deviation } = usualOf(group);
    return { median, deviation: Math.max(deviation, DEVIATION_SHARE * whole.deviation) };
  });
}

/** Changes the order of the values, and the values. Where most are equal, by the mean of the deviations. */
function usualOf(values: Float64Array): Usual {
  const median = medianOf(values);
  let sum = 0;
  for (let index = 0; index < values.length; index += 1) {
    const deviation = Math.abs((values[index] ?? 0) - median);
    values[index] = deviation;
    sum += deviation;
  }
  const mad = medianOf(values);
  return { median, deviation: mad > 0 ? MAD_TO_DEVIATION * mad : (MEAN_TO_DEVIATION * sum) / values.length };
}

function medianOf(values: Float64Array): number {
  const middle = values.length >> 1;
  select(values, middle);
  const high = values[middle] ?? 0;
  if (values.length % 2 === 1) return high;
  let low = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < middle; index += 1) low = Math.max(low, values[index] ?? 0);
  return (low + high) / 2;
}

/** Moves the value of this rank to its place, smaller ones before it: quickselect, a third of the cost of a sort. */
function select(values: Float64Array, rank: number): void {
  for (let low = 0, high = values.length - 1; low < high; ) {
    const pivot = values[(low + high) >> 1] ?? 0;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] ?? 0) < pivot) left += 1;
      while ((values[right] ?? 0) > pivot) right -= 1;
      if (left > right) break;
      const moved = values[left] ?? 0;
      values[left] = values[right] ?? 0;
      values[right] = moved;
      left += 1;
      right -= 1;
    }
    if (rank <= right) high = right;
    else if (rank >= left) low = left;
    else return;
  }
}

/** Hours of the local week, 0 to 167. */
function hoursOfWeek(atMs: Float64Array, zone: string): Uint8Array {
  let untilMs = Number.NEGATIVE_INFINITY;
  let offsetMs = 0;
  const hours = new Uint8Array(atMs.length);
  for (let index = 0; index < atMs.length; index += 1) {
    const ms = atMs[index] ?? 0;
    if (ms >= untilMs) {
      offsetMs = offsetMsAt(ms, zone);
      const next = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).getTimeZoneTransition("next");
      untilMs = next?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
    }
    const hour = Math.floor((ms + offsetMs) / HOUR_MS) % WEEK_HOURS;
    hours[index] = hour < 0 ? hour + WEEK_HOURS : hour;
  }
  return hours;
}
