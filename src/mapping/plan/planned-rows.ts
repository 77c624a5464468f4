/** Reads rows from their bytes, by the plan of a mapper and the rows that the mapper took before. */
import type { RowTracker } from "../../readers/row-place.ts";
import { isPlausible } from "../plausible.ts";
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
  #zone: Zone | undefined;

  constructor(plan: BytePlan, tools: PlanTools) {
    this.#plan = plan;
    this.#tools = tools;
    this.#known = new KnownRows(plan.by, plan.delimiter, plan.values.length);
    this.#starts = new Int32Array(plan.width + 1);
    this.#numbers = new Float64Array(plan.values.length);
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
    if (Number.isNaN(read)) return false;
    const { isLocal } = plan.dates;
    const date = isLocal ? this.#instant(read) : read;
    const missing = this.#readNumbers(bytes);
    if (missing === -1) return false;
    const row = this.#known.find(bytes, starts);
    this.#row = row;
    this.#date = date;
    // The first local time of all is taken by the mapper, which names the zone to the time tools.
    this.#isExample = !Number.isNaN(date) && isPlausible(date);
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

  #hasReadings({ readings }: KnownRow): boolean {
    for (let nth = 0; nth < readings.length; nth += 1)
      if (readings[nth] === undefined && !Number.isNaN(this.#numbers[nth])) return false;
    return true;
  }

  #addReadings({ readings }: KnownRow, line: number): void {
    const { index, rejections } = this.#tools;
    for (let nth = 0; nth < readings.length; nth += 1) {
      const value = this.#numbers[nth] ?? Number.NaN;
      const reading = readings[nth];
      if (Number.isNaN(value) || reading === undefined) continue;
      if (reading.cleared !== index.clearedExtras) remember(reading, index);
      index.add(reading.group, this.#date, value, reading.extra, line, 0);
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
    let nth = 0;
    for (const [column, number] of this.#numbers.entries()) {
      if (Number.isNaN(number)) continue;
      const reading = readings[nth];
      nth += 1;
      if (reading !== undefined) row.readings[column] ??= known(reading);
    }
    row.isShared = hasShared(row.readings);
  }

  /** Whether the readings are those of the cells: then others with the same texts differ in date and value alone. */
  #fits(readings: readonly EmittedReading[], line: number): boolean {
    const numbers = this.#numbers.filter((number) => !Number.isNaN(number));
    return (
      readings.length > 0 &&
      readings.length === numbers.length &&
      readings.every(
        ({ date, value, row, sheet }, nth) =>
          date === this.#date && Object.is(value, numbers[nth]) && row === line && sheet === 0,
      )
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
