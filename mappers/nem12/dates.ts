/** Dates of records: CCYYMMDD, CCYYMMDDhhmm, CCYYMMDDhhmmss, in the zone of the settings. */
import { inColumn } from "../_formats/columns.ts";
import { field, type Record } from "./record.ts";
import type { Tools } from "./settings.ts";

/** Midnight that begins the day, in epoch milliseconds. */
export function dayOf(record: Record, at: number, column: string, tools: Tools): number {
  return read(record, at, column, "yyyyMMdd", tools).epochMilliseconds;
}

export function momentOf(record: Record, at: number, column: string, tools: Tools): Temporal.Instant {
  const format = field(record, at).length === 12 ? "yyyyMMddHHmm" : "yyyyMMddHHmmss";
  return read(record, at, column, format, tools);
}

function read(record: Record, at: number, column: string, format: string, tools: Tools): Temporal.Instant {
  return inColumn(column, field(record, at), (text) => tools.time.local(text, format, tools.settings.timeZone));
}
