/** Numbers, sizes, lengths and moments in words. */
import { localOfMs, msOfLocal } from "../kit/zone.ts";

export function count(value: number): string {
  return value.toLocaleString();
}

export function number(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : value.toLocaleString(undefined, { maximumFractionDigits: 9 });
}

const SIZES = ["B", "KB", "MB", "GB", "TB"] as const;

/** 1 KB is 1,000 bytes. */
export function bytes(value: number): string {
  const power = value < 1_000 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), SIZES.length - 1);
  const digits = power === 0 ? 0 : 1;
  return `${(value / 1_000 ** power).toLocaleString(undefined, { maximumFractionDigits: digits })} ${SIZES[power]}`;
}

const LENGTHS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** The two largest units: `3 h 12 min`; `40 ms`. */
export function length(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 10_000) return `${(whole / 1_000).toLocaleString(undefined, { maximumFractionDigits: 1 })} s`;
  const at = LENGTHS.findIndex(([, unit]) => whole >= unit);
  const [name, unit] = LENGTHS[at] ?? LENGTHS[3];
  const rest = LENGTHS[at + 1];
  const main = `${Math.floor(whole / unit)} ${name}`;
  const more = rest === undefined ? 0 : Math.floor((whole % unit) / rest[1]);
  return more === 0 ? main : `${main} ${more} ${rest?.[0]}`;
}

/** `2026-03-29 03:00:12`, in the zone. */
export function moment(ms: number, zone: string, withSeconds = true): string {
  if (!Number.isFinite(ms)) return "";
  const seconds = String(Math.floor((((ms / 1_000) % 60) + 60) % 60)).padStart(2, "0");
  return `${localOfMs(ms, zone).replace("T", " ")}${withSeconds ? `:${seconds}` : ""}`;
}

/** `UTC+02:00`: the offset of the zone at that moment. */
export function offset(ms: number, zone: string): string {
  const minutes = Math.round((Date.parse(`${localOfMs(ms, zone)}Z`) - Math.floor(ms / 60_000) * 60_000) / 60_000);
  if (minutes === 0) return "UTC";
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "−" : "+"}${String(hours).padStart(2, "0")}:${String(rest).padStart(2, "0")}`;
}

const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?)?\s*(Z|UTC)?\s*([+−-]\d\d:?\d\d)?$/i;

/** Milliseconds of a moment as pages show it or in ISO 8601, in the zone unless it names an offset; null for others. */
export function msOfMoment(text: string, zone: string): number | null {
  const [found, day, time = "00:00", fraction = "", utc, shift] = MOMENT.exec(text.trim()) ?? [];
  if (found === undefined || !Number.isFinite(Date.parse(`${day}T${time}Z`))) return null;
  const rest = Math.trunc(Number(`0${fraction}`) * 1_000);
  if (utc === undefined && shift === undefined) return msOfLocal(`${day}T${time}`, zone) + rest;
  const [, sign, hours, minutes] = /([+−-])(\d\d):?(\d\d)/.exec(shift ?? "+00:00") ?? [];
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === "+" ? 1 : -1);
  return Date.parse(`${day}T${time}Z`) + rest - offsetMs;
}

/** A moment as it can be typed: as pages show it, unless that would be another moment. */
export function typedMoment(text: string, zone: string): string {
  const ms = Date.parse(text);
  if (!Number.isFinite(ms)) return text;
  const words = moment(ms, zone);
  return msOfMoment(words, zone) === ms ? words : text;
}

const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g;
/** The time of a file, as local drops and most servers give it. */
const NANOSECONDS = /\btime (\d{13})\d{6}\b/g;

/** A text of the gateway with its moments as pages show them. */
export function withMoments(text: string, zone: string): string {
  return text
    .replace(NANOSECONDS, (_, ms: string) => `changed ${moment(Number(ms), zone)}`)
    .replace(INSTANT, (instant) => moment(Date.parse(instant), zone) || instant);
}

/** A text of a file or a server where nothing hides: `‹U+202E›` for a mark that turns the direction of what follows. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (mark) => {
    if (mark === "\t" || mark === "\n") return mark;
    return mark === "\r" ? "" : `‹U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

/** Long texts are cut in the middle of nothing: the beginning says most. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
