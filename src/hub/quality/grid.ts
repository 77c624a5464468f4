/** The dates at which points are expected: slots with numbers, in order. */
import { offsetMsAt } from "../time.ts";
import { type CalendarUnit, mostFrequent, type Step } from "./step.ts";

export interface Grid {
  /** Slots of the period: from `first` to `end`, excluded. */
  readonly first: number;
  readonly end: number;
  /** The expected date of a slot. */
  startMs(slot: number): number;
  /** From this moment on points count for the slot. */
  lowMs(slot: number): number;
  slotOf(ms: number): number;
  /** First slot of the period that is expected at this moment or later. */
  slotFrom(ms: number): number;
  /** Milliseconds after the nearest expected date, negative before; null where only the day counts. */
  deviationMs(ms: number): number | null;
  /** Null for steps of a day and longer. */
  readonly stepMs: number | null;
  /** Null where expected dates follow a calendar or the clocks of a zone. */
  readonly even: { readonly phaseMs: number; readonly stepMs: number } | null;
}

export interface Period {
  readonly fromMs: number;
  readonly untilMs: number;
  /** A slot is expected once it is over. */
  readonly nowMs: number;
}

/** `dates`: some points of the variable, which show where between two full steps they usually are. */
export function gridOf(step: Step, dates: readonly number[], zone: string, period: Period): Grid {
  if (step.kind === "clock") {
    const wallMs = wallPhaseOf(dates, step.ms, zone);
    if (wallMs !== null) return wallGrid({ stepMs: step.ms, phaseMs: wallMs, zone }, period);
    return clockGrid(step.ms, phaseOf(dates, step.ms, zone, period.fromMs), period);
  }
  const { unit, count } = step;
  const units = count === 1 ? [] : dates.map((ms) => modulo(unitAt(ms, unit, zone), count));
  return calendarGrid({ unit, count, anchor: mostFrequent(units).value, zone }, period);
}

/** A point counts for the nearest expected date. */
function clockGrid(stepMs: number, phaseMs: number, { fromMs, untilMs, nowMs }: Period): Grid {
  const half = Math.floor(stepMs / 2);
  const first = Math.ceil((fromMs - phaseMs) / stepMs);
  const over = Math.floor((nowMs - phaseMs) / stepMs);
  const end = Math.max(first, Math.min(Math.ceil((untilMs - phaseMs) / stepMs), over));
  const slotOf = (ms: number) => Math.floor((ms - phaseMs + half) / stepMs);
  const startMs = (slot: number) => phaseMs + slot * stepMs;
  return {
    first,
    end,
    startMs,
    lowMs: (slot) => startMs(slot) - half,
    slotOf,
    slotFrom: (ms) => Math.min(end, Math.max(first, Math.ceil((ms - phaseMs) / stepMs))),
    deviationMs: (ms) => ms - startMs(slotOf(ms)),
    stepMs,
    even: { phaseMs, stepMs },
  };
}

/** Share of the points that must agree for an exact phase. */
const AGREEMENT = 0.5;

/**
 * Where the points usually are within the step: exactly, where at least half of them agree, else the middle of where
 * they scatter. Without points at full steps of the local time.
 */
function phaseOf(dates: readonly number[], stepMs: number, zone: string, fromMs: number): number {
  if (dates.length === 0) return modulo(-offsetMsAt(fromMs, zone), stepMs);
  const phases = dates.map((ms) => modulo(ms, stepMs));
  const { value, share } = mostFrequent(phases);
  if (share >= AGREEMENT) return value;
  const angles = phases.map((phase) => (2 * Math.PI * phase) / stepMs);
  const sum = (of: (angle: number) => number) => angles.reduce((total, angle) => total + of(angle), 0);
  return modulo(Math.round((Math.atan2(sum(Math.sin), sum(Math.cos)) / (2 * Math.PI)) * stepMs), stepMs);
}

const HOUR_MS = 3_600_000;

/**
 * The phase in local time, where points follow the clocks of the zone: those of several hours that divide a day, whose
 * dates agree better in local time, or are full steps of it alone. Null: elapsed time counts. Clocks change by an hour
 * at most, so that shorter steps are the same in both.
 */
function wallPhaseOf(dates: readonly number[], stepMs: number, zone: string): number | null {
  if (stepMs <= HOUR_MS || DAY_MS % stepMs !== 0 || dates.length === 0) return null;
  const elapsed = mostFrequent(dates.map((ms) => modulo(ms, stepMs)));
  const local = mostFrequent(dates.map((ms) => modulo(ms + offsetMsAt(ms, zone), stepMs)));
  if (local.share < AGREEMENT || local.share < elapsed.share) return null;
  const isFull = local.value === 0 && elapsed.value !== 0;
  return local.share > elapsed.share || isFull ? local.value : null;
}

interface WallStep {
  readonly stepMs: number;
  /** In local time. */
  readonly phaseMs: number;
  readonly zone: string;
}

/** A point counts for the nearest expected date; the step over a change of the clocks is longer, or shorter. */
function wallGrid({ stepMs, phaseMs, zone }: WallStep, { fromMs, untilMs, nowMs }: Period): Grid {
  const starts = new Map<number, number>();
  const startMs = (slot: number): number => {
    const known = starts.get(slot);
    if (known !== undefined) return known;
    const local = new Date(phaseMs + slot * stepMs).toISOString().slice(0, -1);
    const ms = Temporal.PlainDateTime.from(local).toZonedDateTime(zone).epochMilliseconds;
    starts.set(slot, ms);
    return ms;
  };
  const lowMs = (slot: number) => Math.ceil((startMs(slot - 1) + startMs(slot)) / 2);
  const near = (ms: number) => Math.floor((ms + offsetMsAt(ms, zone) - phaseMs) / stepMs);
  const slotFrom = (ms: number) => {
    let slot = near(ms);
    while (startMs(slot) < ms) slot += 1;
    return slot;
  };
  const first = slotFrom(fromMs);
  const end = Math.max(first, Math.min(slotFrom(untilMs), slotFrom(nowMs + 1) - 1));
  // Points come in order: mostly the slot of the one before, or the next.
  let last = first;
  const slotOf = (ms: number): number => {
    if (ms < lowMs(last) || ms >= lowMs(last + 2)) last = near(ms) - 1;
    while (ms >= lowMs(last + 1)) last += 1;
    return last;
  };
  return {
    first,
    end,
    startMs,
    lowMs,
    slotOf,
    slotFrom: (ms) => Math.min(end, Math.max(first, slotFrom(ms))),
    deviationMs: (ms) => ms - startMs(slotOf(ms)),
    stepMs,
    even: null,
  };
}

interface CalendarStep {
  readonly unit: CalendarUnit;
  readonly count: number;
  /** Number of a unit, modulo `count`, with which a step begins. */
  readonly anchor: number;
  readonly zone: string;
}

/** A slot is the time from its expected date, where a local day begins, to the next; a point in it counts for it. */
function calendarGrid({ unit, count, anchor, zone }: CalendarStep, { fromMs, untilMs, nowMs }: Period): Grid {
  const slotAt = (ms: number) => Math.floor((unitAt(ms, unit, zone) - anchor) / count);
  const starts = new Map<number, number>();
  const startMs = (slot: number): number => {
    const known = starts.get(slot);
    if (known !== undefined) return known;
    const day = dayOfUnit(slot * count + anchor, unit).toZonedDateTime(zone).epochMilliseconds;
    starts.set(slot, day);
    return day;
  };
  const slotFrom = (ms: number) => (startMs(slotAt(ms)) < ms ? slotAt(ms) + 1 : slotAt(ms));
  const first = slotFrom(fromMs);
  const end = Math.max(first, Math.min(slotFrom(untilMs), slotAt(nowMs)));
  // Points come in order: mostly the slot of the one before, or the next.
  let last = first;
  const slotOf = (ms: number): number => {
    while (last < end && ms >= startMs(last + 1)) last += 1;
    if (ms < startMs(last)) last = slotAt(ms);
    return last;
  };
  return {
    first,
    end,
    startMs,
    lowMs: startMs,
    slotOf,
    slotFrom: (ms) => Math.min(end, Math.max(first, slotFrom(ms))),
    deviationMs: () => null,
    stepMs: null,
    even: null,
  };
}

const DAY_MS = 86_400_000;

/** Number of the day, week, month or year that holds a moment. */
function unitAt(ms: number, unit: CalendarUnit, zone: string): number {
  const { year, month, day } = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
  if (unit === "Year") return year;
  if (unit === "Month") return year * 12 + month - 1;
  // Date.UTC maps years 0 to 99 to 1900 and later.
  const number = new Date(0).setUTCFullYear(year, month - 1, day) / DAY_MS;
  // 1 January 1970 was a Thursday; weeks begin on Monday.
  return unit === "Day" ? number : Math.floor((number + 3) / 7);
}

const DAY_ONE = Temporal.PlainDate.from("1970-01-01");

function dayOfUnit(number: number, unit: CalendarUnit): Temporal.PlainDate {
  if (unit === "Day") return DAY_ONE.add({ days: number });
  if (unit === "Week") return DAY_ONE.add({ days: number * 7 - 3 });
  const year = unit === "Year" ? number : Math.floor(number / 12);
  return Temporal.PlainDate.from({ year, month: unit === "Year" ? 1 : modulo(number, 12) + 1, day: 1 });
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
