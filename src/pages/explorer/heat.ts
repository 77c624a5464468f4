/** The cells of a heat map: the days of a period side by side, and in each the hours of its clock. */
import { addToLocal, localOfMs, msOfLocal } from "../kit/zone.ts";
import type { Series } from "./series.ts";

export const HOURS = 24;
const HOUR_S = 3_600;
const DAY_S = 86_400;

export interface Cells {
  /** Days since 1970 of the first local day. */
  readonly firstDay: number;
  readonly days: number;
  /** By day, then hour: place of the first value of the cell; -1 where it has none. */
  readonly places: Int32Array;
  /** Two where the clock shows the hour twice. */
  readonly counts: Uint8Array;
  readonly least: number;
  readonly most: number;
}

interface Period {
  /** Local times. */
  readonly from: string;
  readonly to: string;
}

/** Seconds of a local time, as if it were one of UTC. */
export function wallOf(local: string): number {
  return Date.parse(`${local.length === 10 ? `${local}T00:00` : local}Z`) / 1_000;
}

export function localOfWall(wall: number): string {
  return new Date(Math.round(wall * 1_000)).toISOString().slice(0, 16);
}

export function cellsOf({ times, offsets, values }: Series, { from, to }: Period): Cells {
  const firstDay = Math.floor(wallOf(from) / DAY_S);
  const days = Math.max(1, Math.ceil(wallOf(to) / DAY_S) - firstDay);
  const places = new Int32Array(days * HOURS).fill(-1);
  const counts = new Uint8Array(days * HOURS);
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const [at, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    const cell = cellAt((times[at] ?? 0) + 60 * (offsets[at] ?? 0), firstDay);
    if (cell < 0 || cell >= places.length) continue;
    if (counts[cell] === 0) places[cell] = at;
    counts[cell] = (counts[cell] ?? 0) + 1;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return { firstDay, days, places, counts, least, most };
}

function cellAt(wall: number, firstDay: number): number {
  const day = Math.floor(wall / DAY_S);
  return (day - firstDay) * HOURS + Math.floor((wall - day * DAY_S) / HOUR_S);
}

/** A rectangle in days since 1970 and hours of the day. */
export interface Patch {
  readonly day: number;
  readonly hour: number;
  readonly hours: number;
}

/** Where the value of a place stands: the second one of an hour that comes twice stands below the first. */
export function patchOf({ times, offsets }: Series, { firstDay, places, counts }: Cells, at: number): Patch {
  const cell = cellAt((times[at] ?? 0) + 60 * (offsets[at] ?? 0), firstDay);
  const count = Math.max(1, counts[cell] ?? 1);
  const part = Math.max(0, at - (places[cell] ?? at));
  return {
    day: firstDay + Math.floor(cell / HOURS),
    hour: (((cell % HOURS) + HOURS) % HOURS) + part / count,
    hours: 1 / count,
  };
}

/** The place of the value at a day and an hour with its fraction; null where there is none. */
export function placeIn({ firstDay, days, places, counts }: Cells, day: number, hour: number): number | null {
  const [column, row] = [Math.floor(day) - firstDay, Math.floor(hour)];
  if (column < 0 || column >= days || row < 0 || row >= HOURS) return null;
  const cell = column * HOURS + row;
  const count = counts[cell] ?? 0;
  return count === 0 ? null : (places[cell] ?? 0) + Math.min(count - 1, Math.floor((hour - row) * count));
}

export type Absence = "missing" | "skipped" | "outside";

/** Why a cell has no value: the clock skips its hour, or it is not of the period, or the value is missing. */
export function absences({ from, to }: Period, zone: string): (day: number, hour: number) => Absence {
  const [begin, end] = [wallOf(from), wallOf(to)];
  const known = new Map<number, boolean>();
  const isUsual = (day: number) => {
    const held = known.get(day);
    if (held !== undefined) return held;
    const local = localOfWall(day * DAY_S);
    const usual = msOfLocal(addToLocal(local, 1, "day"), zone) - msOfLocal(local, zone) === DAY_S * 1_000;
    known.set(day, usual);
    return usual;
  };
  return (day, hour) => {
    const wall = day * DAY_S + hour * HOUR_S;
    if (wall + HOUR_S <= begin || wall >= end) return "outside";
    if (isUsual(day)) return "missing";
    const local = localOfWall(wall);
    return localOfMs(msOfLocal(local, zone), zone) === local ? "missing" : "skipped";
  };
}
