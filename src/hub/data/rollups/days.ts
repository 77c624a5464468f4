/** Aggregates of days, and their bytes in a rollup: eight doubles a day, least significant byte first. */
import type { PeriodSums } from "../buckets.ts";

export interface Day extends PeriodSums {
  readonly startMs: number;
  /** Excluded. */
  readonly endMs: number;
}

const FIELDS = ["startMs", "endMs", "firstMs", "count", "sum", "error", "min", "max"] as const satisfies (keyof Day)[];
const WIDTH = 8;

export function bytesOfDays(days: readonly Day[]): Uint8Array {
  const bytes = new Uint8Array(days.length * FIELDS.length * WIDTH);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const day of days)
    for (const field of FIELDS) {
      view.setFloat64(at, day[field], true);
      at += WIDTH;
    }
  return bytes;
}

export function daysOfBytes({ buffer, byteOffset, byteLength }: Uint8Array): Day[] {
  const view = new DataView(buffer, byteOffset, byteLength);
  const days: Day[] = [];
  for (let at = 0; at < byteLength; at += FIELDS.length * WIDTH) {
    const field = (index: number) => view.getFloat64(at + index * WIDTH, true);
    days.push({
      startMs: field(0),
      endMs: field(1),
      firstMs: field(2),
      count: field(3),
      sum: field(4),
      error: field(5),
      min: field(6),
      max: field(7),
    });
  }
  return days;
}
