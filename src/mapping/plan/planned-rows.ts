/** Reads rows from their bytes, by the plan of a mapper and the rows that the mapper took before. */

import { ownBytes } from "#core/own-copy.ts";
import { isPlausible } from "../plausible.ts";
import type { RowTracker } from "../readers/row-place.ts";
import type { ReadingIndex } from "../reading-index.ts";
import type { Rejections } from "../rejections.ts";
import type { Passed } from "../series-order.ts";
import type { Zone } from "../zone.ts";
import { byteNumber } from "./byte-numbers.ts";
import type { BytePlan } from "./byte-plan.ts";
import type { Emitted, EmittedReading } from "./emitted.ts";
import { type KnownReading, type KnownRow, KnownRows } from "./known-rows.ts";

export interface PlanTools {
  readonly index: ReadingIndex;
  readonly rejections: Rejections;
  readonly tracker: RowTracker;
  readonly emitted: Emitted;
  /** Runs the mapper's code for a row, and refuses the row when that throws a `RowError`. */
  readonly attempt: (row: object, take: () => void) => void;
  readonly knownZone: (name: string) => Zone | undefined;
  readonly takePassed: () => Passed | undefined;
}

const LF = 10;
/** A file in which so many more rows are new than known is read without the plan. */
const LOSS_MAX = 5000;
const DAY_MS = 86_400_000;
/** Different texts of statuses; rows with further ones are taken by the mapper. */
const STATUSES_MAX = 64;

export class PlannedRows {
  readonly #plan: BytePlan;
  readonly #tools: PlanTools;
  readonly #known: KnownRows;
  /** Where each cell of the line begins, and where the cell after the last would. */
  readonly #starts: Int32Array;
  /** Number of cells of the line. */
  #cells = 0;
  /** Of the line, if it is plain but for cells that are not known yet. */
  #isExample = false;
  #row: KnownRow | undefined;
  #date = 0;
  /** NaN for cells without a value. */
  readonly #numbers: Float64Array;
  /** Places of the values in the readings of a known row: each its own, but on rows of a day those of their status. */
  readonly #slots: Int32Array;
  readonly #statuses: Uint8Array[] = [];
  #zone: Zone | undefined;

  constructor(plan: BytePlan, tools: PlanTools) {
    this.#plan = plan;
    this.#tools = tools;
    const { length } = plan.values;
    this.#known = new KnownRows(plan.by, plan.delimiter, plan.day === undefined ? length : 1);
    this.#starts = new Int32Array(plan.width + 1);
    this.#numbers = new Float64Array(length);
    this.#slots = Int32Array.from({ length }, (_, nth) => (plan.day === undefined ? nth : 0));
  }

  get isWorthwhile(): boolean {
    return this.#known.gain > -LOSS_MAX;
  }

  /** Finds the cells of the line that begins there. Returns the place of its LF, or the end of the bytes. */
  split(bytes: Uint8Array, from: number): number {
    const { delimiter, width } = this.#plan;
    const starts = this.#starts;
    const { length } = bytes;
    starts[0] = from;
    let cells = 1;
    let at = from;
    for (; at < length; at += 1) {
      const byte = bytes[at];
      if (byte === delimiter) {
        if (cells < width) starts[cells] = at + 1;
        cells += 1;
      } else if (byte === LF) break;
    }
    this.#cells = cells;
    return at;
  }

  /** Takes the line that was split, which ends there. False when the mapper has to take it. */
  takeLine(bytes: Uint8Array, to: number, line: number): boolean {
    const plan = this.#plan;
    const starts = this.#starts;
    this.#isExample = false;
    if (this.#cells !== plan.width) return false;
    starts[plan.width] = to + 1;
    for (const at of plan.unnamed) if ((starts[at + 1] ?? 0) - (starts[at] ?? 0) > 1) return false;
    const read = plan.dates.read(bytes, starts[plan.dateColumn] ?? 0, (starts[plan.dateColumn + 1] ?? 0) - 1);
    const { isLocal } = plan.dates;
    if (Number.isNaN(read) || (plan.day !== undefined && !(isLocal && read % DAY_MS === 0))) return false;
    const date = isLocal ? this.#instant(read) : read;
    const missing = this.#readNumbers(bytes);
    if (missing === -1 || !this.#readStatuses(bytes)) return false;
    const row = this.#known.find(bytes, starts);
    this.#row = row;
    this.#date = date;
    // The first local time of all is taken by the mapper, which names the zone to the time tools.
    const { least = 0, most = 0 } = plan.day ?? {};
    this.#isExample = !Number.isNaN(date) && isPlausible(date + least) && isPlausible(date + most);
    if (!this.#isExample || row === undefined || row.isShared || !this.#hasReadings(row)) return false;
    if (isLocal && plan.isOrdered) {
      if (row.passed === undefined) return false;
      row.passed.order.passIn(row.passed.series, read);
    }
    this.#addReadings(row, line);
    if (missing > 0) plan.countMissing(missing);
    return true;
  }

  /** NaN around a change of the clock, and before the mapper has named the zone. */
  #instant(wall: number): number {
    const { zone } = this.#plan;
    this.#zone ??= zone === undefined ? undefined : this.#tools.knownZone(zone);
    return this.#zone?.plain(wall) ?? Number.NaN;
  }

  /** Returns the number of cells without a value, or -1 when some cell is not plain. */
  #readNumbers(bytes: Uint8Array): number {
    const { values, mark, missing } = this.#plan;
    const numbers = this.#numbers;
    let empty = 0;
    for (let nth = 0; nth < values.length; nth += 1) {
      const column = values[nth] ?? 0;
      const from = this.#starts[column] ?? 0;
      const to = (this.#starts[column + 1] ?? 0) - 1;
      const isEmpty = missing.length > 0 && missing.some((text) => isText(text, bytes, from, to));
      const number = isEmpty ? Number.NaN : byteNumber(bytes, from, to, mark);
      numbers[nth] = number;
      if (isEmpty) empty += 1;
      else if (Number.isNaN(number)) return -1;
    }
    return empty;
  }

  /** False when some value has a status of a kind that is not known yet, and there are too many. */
  #readStatuses(bytes: Uint8Array): boolean {
    const { status } = this.#plan.day ?? { status: [] };
    let latest = 0;
    for (let nth = 0; nth < status.length; nth += 1) {
      if (Number.isNaN(this.#numbers[nth])) continue;
      const column = status[nth] ?? 0;
      latest = this.#statusAt(bytes, this.#starts[column] ?? 0, (this.#starts[column + 1] ?? 0) - 1, latest);
      if (latest === -1) return false;
      this.#slots[nth] = latest;
    }
    return true;
  }

  /** Number of the status between two places; mostly the latest. */
  #statusAt(bytes: Uint8Array, from: number, to: number, latest: number): number {
    const statuses = this.#statuses;
    const text = statuses[latest];
    if (text !== undefined && isText(text, bytes, from, to)) return latest;
    const found = statuses.findIndex((one) => isText(one, bytes, from, to));
    if (found !== -1) return found;
    return statuses.length < STATUSES_MAX ? statuses.push(ownBytes(bytes, from, to)) - 1 : -1;
  }

  #hasReadings({ readings }: KnownRow): boolean {
    for (let nth = 0; nth < this.#slots.length; nth += 1)
      if (readings[this.#slots[nth] ?? 0] === undefined && !Number.isNaN(this.#numbers[nth])) return false;
    return true;
  }

  #dateOf(nth: number): number {
    return this.#date + (this.#plan.day?.after[nth] ?? 0);
  }

  #addReadings({ readings }: KnownRow, line: number): void {
    const { index, rejections } = this.#tools;
    for (let nth = 0; nth < this.#slots.length; nth += 1) {
      const value = this.#numbers[nth] ?? Number.NaN;
      const reading = readings[this.#slots[nth] ?? 0];
      if (Number.isNaN(value) || reading === undefined) continue;
      if (reading.cleared !== index.clearedExtras) remember(reading, index);
      index.add(reading.group, this.#dateOf(nth), value, reading.extra, line, 0);
      rejections.taken(line);
    }
  }

  /** Has the mapper take the line, and keeps what it emits as an example where the line is plain. */
  learn(bytes: Uint8Array, line: number, take: () => void): void {
    if (!this.#isExample) {
      take();
      return;
    }
    const { emitted, rejections, takePassed } = this.#tools;
    const refused = rejections.count;
    takePassed();
    emitted.isRecorded = true;
    let readings: readonly EmittedReading[];
    try {
      take();
    } finally {
      emitted.isRecorded = false;
      readings = emitted.take();
    }
    const passed = takePassed();
    if (rejections.count !== refused || !this.#fits(readings, line)) {
      this.#known.gain -= 1;
      return;
    }
    const row = this.#row ?? this.#known.add(bytes, this.#starts);
    if (passed !== undefined) row.passed = passed;
    for (const [at, nth] of this.#filled().entries()) {
      const reading = readings[at];
      if (reading !== undefined) this.#known.learn(row, this.#slots[nth] ?? 0, known(reading));
    }
    // The values of a day have one target, and dates of their own.
    row.isShared = this.#plan.day === undefined && hasShared(row.readings);
  }

  /** The value columns of the line that have a value. */
  #filled(): readonly number[] {
    return [...this.#numbers.keys()].filter((nth) => !Number.isNaN(this.#numbers[nth]));
  }

  /** Whether the readings are those of the cells: then others with the same texts differ in date and value alone. */
  #fits(readings: readonly EmittedReading[], line: number): boolean {
    const filled = this.#filled();
    return (
      readings.length > 0 &&
      readings.length === filled.length &&
      readings.every(({ date, value, row, sheet, group }, at) => {
        const nth = filled[at] ?? 0;
        const isOfDay = this.#plan.day === undefined || group === readings[0]?.group;
        return (
          isOfDay && date === this.#dateOf(nth) && Object.is(value, this.#numbers[nth]) && row === line && sheet === 0
        );
      })
    );
  }
}

function isText(text: Uint8Array, bytes: Uint8Array, from: number, to: number): boolean {
  if (text.length !== to - from) return false;
  for (let at = 0; at < text.length; at += 1) if (text[at] !== bytes[from + at]) return false;
  return true;
}

function known({ group, version, tags, batchTags }: EmittedReading): KnownReading {
  return { group, version, tags, batchTags, extra: 0, cleared: Number.NaN };
}

/** Finds the index of version and tags, which a spill makes invalid. */
function remember(reading: KnownReading, index: ReadingIndex): void {
  const { version, tags, batchTags } = reading;
  const hasExtra = version !== undefined || tags !== undefined || batchTags !== undefined;
  reading.extra = hasExtra ? index.extra(version, tags, batchTags) : 0;
  reading.cleared = index.clearedExtras;
}

function hasShared(readings: KnownRow["readings"]): boolean {
  const groups = readings.flatMap((reading) => (reading === undefined ? [] : [reading.group]));
  return new Set(groups).size < groups.length;
}
