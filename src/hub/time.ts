/** Instants of points: milliseconds since 1970 in UTC; local times only at the edges. */
import { ianaZone } from "#wire/index.ts";

export function isoOfMs(ms: number): string {
  return new Date(ms).toISOString();
}

/** ISO 8601 with microseconds, as VersionTimestamps are written. */
export function isoOfUs(us: number): string {
  const ms = Math.floor(us / 1_000);
  return `${new Date(ms).toISOString().slice(0, -1)}${String(us - ms * 1_000).padStart(3, "0")}Z`;
}

export type ReadInstant =
  /** `beyond`: decimals of the second beyond the millisecond, which are cut, without trailing zeros. */
  | { readonly kind: "instant"; readonly ms: number; readonly beyond: string }
  | { readonly kind: "refused"; readonly reason: string };

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/;

/** Meaning of a local time that a change of the clocks repeats or skips. */
export interface LocalRule {
  readonly repeated: "earlier" | "later";
  readonly skipped: "refuse" | "shift";
}

/** Pushed readings: a repeated time is in the second pass (platform facts, *Time*); a skipped time is invalid. */
export const READING_RULE: LocalRule = { repeated: "later", skipped: "refuse" };
/** Bounds of a period: the same choice for both, so that adjoining periods neither overlap nor leave a gap. */
export const PERIOD_RULE: LocalRule = { repeated: "earlier", skipped: "shift" };

/** Reads ISO 8601. A designator is binding; a time without one is read in the zone (IANA name). */
export function readInstant(text: string, zone: string, rule: LocalRule): ReadInstant {
  const match = ISO.exec(text.trim());
  if (match === null) return refused("the date is not ISO 8601");
  const [, year = "", month = "", day = "", hour = "00", minute = "00", second = "00", fraction = "", offset] = match;
  const beyond = fraction.slice(3).replace(/0+$/, "");
  const utc = Date.UTC(+year, +month - 1, +day, +hour, +minute, +second, +fraction.slice(0, 3).padEnd(3, "0"));
  const back = new Date(utc);
  // Date.UTC turns 30 February into a day of March; such a date is invalid. Date.UTC maps years 0 to 99 to 1900 and
  // later.
  const whole = back.getUTCFullYear() === +year && back.getUTCMonth() === +month - 1 && back.getUTCDate() === +day;
  if (!whole || +hour > 23 || +minute > 59 || +second > 59) return refused("the date does not exist");
  if (offset === undefined) return localInstant(utc, beyond, zone, rule);
  if (offset === "Z" || offset === "z") return { kind: "instant", ms: utc, beyond };
  const minutes = +offset.slice(1, 3) * 60 + +(offset.slice(3).replace(":", "") || 0);
  if (minutes > 18 * 60) return refused("the offset of the date does not exist");
  return { kind: "instant", beyond, ms: utc - (offset.startsWith("-") ? -minutes : minutes) * 60_000 };
}

let dayKey = -1;
let dayMs = Number.NaN;

/**
 * `2026-03-01T00:15:00Z`, with or without milliseconds, as nearly all readings are dated; NaN: another form, see
 * `readInstant`.
 */
export function plainInstantMs(text: string): number {
  const { length } = text;
  if ((length !== 20 && length !== 24) || text.charCodeAt(length - 1) !== 90) return Number.NaN;
  if (text[4] !== "-" || text[7] !== "-" || text[10] !== "T" || text[13] !== ":" || text[16] !== ":") return Number.NaN;
  if (length === 24 && text[19] !== ".") return Number.NaN;
  // A character other than a digit makes the sum NaN.
  const key = (digits(text, 0, 4) * 100 + digits(text, 5, 2)) * 100 + digits(text, 8, 2);
  const hour = digits(text, 11, 2);
  const minute = digits(text, 14, 2);
  const second = digits(text, 17, 2);
  if (hour > 23 || minute > 59 || second > 59) return Number.NaN;
  if (key !== dayKey) {
    dayKey = key;
    dayMs = dayOf(key);
  }
  const ms = length === 24 ? digits(text, 20, 3) : 0;
  return dayMs + ((hour * 60 + minute) * 60 + second) * 1_000 + ms;
}

function digits(text: string, from: number, count: number): number {
  let number = 0;
  for (let index = from; index < from + count; index += 1) {
    const digit = text.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) return Number.NaN;
    number = number * 10 + digit;
  }
  return number;
}

/**
 * `key`: the digits yyyymmdd as a number. NaN for a day that does not exist, and for the first century, which Date.UTC
 * maps to 1900 and later.
 */
function dayOf(key: number): number {
  const day = key % 100;
  const month = Math.floor(key / 100) % 100;
  const year = Math.floor(key / 10_000);
  const ms = year < 100 ? Number.NaN : Date.UTC(year, month - 1, day);
  const back = new Date(ms);
  return back.getUTCMonth() === month - 1 && back.getUTCDate() === day ? ms : Number.NaN;
}

function refused(reason: string): ReadInstant {
  return { kind: "refused", reason };
}

/** `wallMs`: the local wall time written as if it were UTC. */
function localInstant(wallMs: number, beyond: string, zone: string, rule: LocalRule): ReadInstant {
  if (zone === "UTC" || zone === "Etc/UTC") return { kind: "instant", ms: wallMs, beyond };
  const wall = Temporal.Instant.fromEpochMilliseconds(wallMs).toZonedDateTimeISO("UTC").toPlainDateTime();
  const ms = wall.toZonedDateTime(zone, { disambiguation: rule.repeated }).epochMilliseconds;
  if (rule.skipped === "refuse" && ms + offsetMsAt(ms, zone) !== wallMs)
    return refused(`the local date does not exist in ${zone} (the clocks skip it)`);
  return { kind: "instant", ms, beyond };
}

export function offsetMsAt(ms: number, zone: string): number {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).offsetNanoseconds / 1_000_000;
}

const DAY_MS = 86_400_000;
const TWO = Array.from({ length: 60 }, (_, index) => String(index).padStart(2, "0"));

/**
 * Writes instants in one zone, `2026-03-29T03:00:00+02:00`; remembers the offset until the next change of the clocks.
 */
export class ZoneWriter {
  private readonly zone: string;
  private fromMs = Number.POSITIVE_INFINITY;
  private untilMs = Number.NEGATIVE_INFINITY;
  private offsetMs = 0;
  private suffix = "";
  /** The latest local day as text, `2026-03-29T`, since the next point mostly has the same. */
  private day = "";
  private dayMs = Number.NaN;

  /** `zoneId`: Windows or IANA. */
  constructor(zoneId: string) {
    this.zone = ianaZone(zoneId) ?? "UTC";
  }

  write(ms: number): string {
    if (ms < this.fromMs || ms >= this.untilMs) this.lookUp(ms);
    const local = ms + this.offsetMs;
    const inDay = local - this.dayMs;
    if (inDay < 0 || inDay >= DAY_MS || inDay % 1_000 !== 0) return this.writeFresh(local);
    const seconds = inDay / 1_000;
    const minutes = Math.floor(seconds / 60);
    return `${this.day}${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}${this.suffix}`;
  }

  /** Writes a point of another day than the one before, or with milliseconds. */
  private writeFresh(local: number): string {
    const text = new Date(local).toISOString();
    const end = text.indexOf("T") + 1;
    this.day = text.slice(0, end);
    this.dayMs = Math.floor(local / DAY_MS) * DAY_MS;
    return (text.endsWith(".000Z") ? text.slice(0, -5) : text.slice(0, -1)) + this.suffix;
  }

  private lookUp(ms: number): void {
    const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(this.zone);
    // One nanosecond later, so that a change at this very instant counts as the previous one.
    const since = at.add({ nanoseconds: 1 }).getTimeZoneTransition("previous");
    this.fromMs = since?.epochMilliseconds ?? Number.NEGATIVE_INFINITY;
    this.untilMs = at.getTimeZoneTransition("next")?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
    // ISO 8601 writes offsets in minutes: the seconds of historical offsets (Paris until 1911, Monrovia until 1972)
    // stay with the time.
    this.offsetMs = Math.trunc(at.offsetNanoseconds / 60_000_000_000) * 60_000;
    this.suffix = at.offset.slice(0, 6);
  }
}
