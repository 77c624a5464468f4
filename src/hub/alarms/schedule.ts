/**
 * When an alarm counts: days and hours by the clock of a zone. A time that a change of the clocks skips is the moment
 * of the change; of a repeated one the first pass counts.
 */
import type { AlarmSchedule } from "#wire/index.ts";

const WEEK = 7;
const DAYS = [1, 2, 3, 4, 5, 6, 7];

interface Span {
  readonly fromMs: number;
  /** Excluded. */
  readonly untilMs: number;
}

export function counts(schedule: AlarmSchedule | undefined, zone: string, ms: number): boolean {
  return nextCounted(schedule, zone, ms) === ms;
}

/** The span of each schedule and zone that was found last, and since when it is the next one. */
const found = new WeakMap<AlarmSchedule, Map<string, Span & { readonly sinceMs: number }>>();

/** The first moment from then on at which the alarm counts. Points in sequence mostly lie in one span. */
export function nextCounted(schedule: AlarmSchedule | undefined, zone: string, ms: number): number {
  if (schedule === undefined) return ms;
  const known = found.get(schedule)?.get(zone);
  if (known !== undefined && ms >= known.sinceMs && ms < known.untilMs) return Math.max(ms, known.fromMs);
  const span = nextSpan(schedule, zone, ms);
  if (span === null) return ms;
  const zones = found.get(schedule) ?? new Map<string, Span & { readonly sinceMs: number }>();
  found.set(schedule, zones.set(zone, { ...span, sinceMs: Math.min(ms, span.fromMs) }));
  return Math.max(ms, span.fromMs);
}

/** The one that lasts then, or the next one. */
function nextSpan(schedule: AlarmSchedule, zone: string, ms: number): Span | null {
  const today = dateOf(ms, zone);
  // A span that began yesterday may still last.
  for (let ahead = -1; ahead <= WEEK; ahead += 1) {
    const span = spanOf(schedule, zone, today.add({ days: ahead }));
    if (span !== null && span.untilMs > ms && span.untilMs > span.fromMs) return span;
  }
  return null;
}

/** Null on a day that has none. */
function spanOf(schedule: AlarmSchedule, zone: string, date: Temporal.PlainDate): Span | null {
  const { days = DAYS, from = "00:00", until = "00:00" } = schedule;
  if (!days.includes(date.dayOfWeek)) return null;
  const last = until <= from ? date.add({ days: 1 }) : date;
  return { fromMs: momentOf(date, from, zone), untilMs: momentOf(last, until, zone) };
}

/** The last moment of that time of day, up to and including `ms`; null: none in the last week. */
export function lastTime(time: string, days: readonly number[] | undefined, zone: string, ms: number): number | null {
  return timeAround(time, days, zone, ms, -1);
}

/** The first moment of that time of day after `ms`. */
export function nextTime(time: string, days: readonly number[] | undefined, zone: string, ms: number): number {
  return timeAround(time, days, zone, ms, 1) ?? ms + WEEK * 86_400_000;
}

function timeAround(time: string, days: readonly number[] = DAYS, zone: string, ms: number, step: 1 | -1) {
  const today = dateOf(ms, zone);
  for (let away = 0; away <= WEEK; away += 1) {
    const date = today.add({ days: away * step });
    if (!days.includes(date.dayOfWeek)) continue;
    const moment = momentOf(date, time, zone);
    if (step === 1 ? moment > ms : moment <= ms) return moment;
  }
  return null;
}

function dateOf(ms: number, zone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDate();
}

function momentOf(date: Temporal.PlainDate, time: string, zone: string): number {
  const wall = date.toPlainDateTime(Temporal.PlainTime.from(time));
  const first = wall.toZonedDateTime(zone, { disambiguation: "earlier" });
  if (first.toPlainDateTime().equals(wall)) return first.epochMilliseconds;
  return first.getTimeZoneTransition("next")?.epochMilliseconds ?? first.epochMilliseconds;
}
