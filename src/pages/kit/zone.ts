/** Local times of any zone, written as `2026-03-29T03:00`, with nothing but what every browser has. */
import windowsZones from "#wire/referentials/windows-zones.json" with { type: "json" };

const ianaOfWindows: Readonly<Record<string, string>> = windowsZones;
const writers = new Map<string, Intl.DateTimeFormat>();

/** IANA name of a zone of the hub, Windows or IANA; UTC where the browser does not know it. */
export function ianaOf(zone: string): string {
  const name = ianaOfWindows[zone] ?? zone;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return "UTC";
  }
}

export function zoneOfBrowser(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function nowMs(): number {
  return Math.round(performance.timeOrigin + performance.now());
}

/** The wall clock of a moment in a zone, as if it were one of UTC. */
function wallMs(ms: number, zone: string): number {
  let writer = writers.get(zone);
  if (writer === undefined) {
    writer = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    writers.set(zone, writer);
  }
  const part: Record<string, number> = {};
  for (const { type, value } of writer.formatToParts(ms)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** The moment of a local time; the earlier one of a time that occurs twice, as the hub reads bounds. */
export function msOfLocal(local: string, zone: string): number {
  const wall = Date.parse(`${local.length === 10 ? `${local}T00:00` : local}Z`);
  const candidates = [-86_400_000, 86_400_000].map((shift) => {
    const at = wall + shift;
    return wall - (wallMs(at, zone) - at);
  });
  const exact = candidates.filter((ms) => wallMs(ms, zone) === wall);
  return exact.length > 0 ? Math.min(...exact) : Math.max(...candidates);
}

export function localOfMs(ms: number, zone: string): string {
  return new Date(wallMs(ms, zone)).toISOString().slice(0, 16);
}

/** Adds to the calendar, so that a day of 23 hours is a day. */
export function addToLocal(local: string, count: number, unit: "day" | "month" | "year"): string {
  const at = new Date(`${local.length === 10 ? `${local}T00:00` : local}Z`);
  if (unit === "day") at.setUTCDate(at.getUTCDate() + count);
  if (unit === "month") at.setUTCMonth(at.getUTCMonth() + count);
  if (unit === "year") at.setUTCFullYear(at.getUTCFullYear() + count);
  return at.toISOString().slice(0, 16);
}

/** `2026-03-29T03:00:00+02:00` as the hub writes it, in words. */
export function dateWords(text: string, isDay: boolean): string {
  const [day = "", rest = ""] = text.split("T");
  if (isDay) return day;
  const time = rest.slice(0, 8);
  const offset = /(?:Z|[+-]\d\d:\d\d)$/.exec(rest)?.[0] ?? "";
  return `${day} ${time.endsWith(":00") ? time.slice(0, 5) : time} ${offset}`;
}
