/** Rows of /data as columns of numbers, which take a tenth of the memory of rows. */
import type { DataRow } from "./hub.ts";

const ROWS_FIRST = 1_024;

class Numbers {
  #held = new Float64Array(ROWS_FIRST);
  #length = 0;

  push(value: number): void {
    if (this.#length === this.#held.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#held);
      this.#held = larger;
    }
    this.#held[this.#length] = value;
    this.#length += 1;
  }

  taken(): Float64Array {
    return this.#held.slice(0, this.#length);
  }
}

/** Of one variable, in order of date. */
export interface Columns {
  /** Of the values; null without rows. */
  readonly unitId: number | null;
  /** Seconds since 1970. */
  readonly times: Float64Array;
  /** Minutes that local times are ahead of UTC. */
  readonly offsets: Float64Array;
  /** By the names of the rows; NaN where a row has none. */
  readonly values: ReadonlyMap<ValueName, Float64Array>;
}

export type ValueName = keyof DataRow & `${string}Value`;

export class ColumnsOfRows {
  readonly #times = new Numbers();
  readonly #offsets = new Numbers();
  readonly #values: ReadonlyMap<ValueName, Numbers>;
  #unitId: number | null = null;
  #suffix = "";
  #offset = 0;

  constructor(names: readonly ValueName[]) {
    this.#values = new Map(names.map((name) => [name, new Numbers()]));
  }

  add(row: DataRow): void {
    const date = row.date ?? "";
    this.#unitId ??= row.unitId ?? null;
    if (!date.endsWith(this.#suffix) || this.#suffix === "") {
      this.#suffix = date.slice(-6);
      this.#offset = offsetOf(this.#suffix);
    }
    this.#times.push(Date.parse(date) / 1_000);
    this.#offsets.push(this.#offset);
    for (const [name, column] of this.#values) column.push(row[name] ?? Number.NaN);
  }

  taken(): Columns {
    const values = new Map([...this.#values].map(([name, column]) => [name, column.taken()]));
    return { unitId: this.#unitId, times: this.#times.taken(), offsets: this.#offsets.taken(), values };
  }
}

/** Of `+02:00`. */
function offsetOf(suffix: string): number {
  const [, sign, hours = "0", minutes = "0"] = /^([+-])(\d\d):(\d\d)$/.exec(suffix) ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

/** A date as the hub writes it: `2026-03-29T03:00:00+02:00`. */
export function dateText(seconds: number, offset: number): string {
  const local = new Date(Math.round(seconds * 1_000) + offset * 60_000).toISOString();
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  const suffix = `${offset < 0 ? "-" : "+"}${String(hours).padStart(2, "0")}:${String(minutes).padStart(2, "0")}`;
  return (local.endsWith(".000Z") ? local.slice(0, -5) : local.slice(0, -1)) + suffix;
}

/** Places in columns that are in order of time, with all that are at the same time; -1 where a column has none. */
export function* sameTimes(columns: readonly Float64Array[]): Generator<{ time: number; places: readonly number[] }> {
  const next = columns.map(() => 0);
  const places = columns.map(() => -1);
  for (;;) {
    let time = Number.POSITIVE_INFINITY;
    columns.forEach((times, at) => {
      time = Math.min(time, times[next[at] ?? 0] ?? Number.POSITIVE_INFINITY);
    });
    if (time === Number.POSITIVE_INFINITY) return;
    columns.forEach((times, at) => {
      const place = next[at] ?? 0;
      const isHere = times[place] === time;
      places[at] = isHere ? place : -1;
      if (isHere) next[at] = place + 1;
    });
    yield { time, places };
  }
}
