/** Reads rows from their bytes, by the plan of a mapper and the rows that the mapper took before. */
import { ownBytes } from "#core/own-copy.ts";
import type { Reading } from "../mapper.ts";
import { isPlausible } from "../plausible.ts";
import type { RowTracker } from "../readers/row-place.ts";
import type { Group, ReadingIndex } from "../reading-index.ts";
import type { Rejections } from "../rejections.ts";
import type { Passed } from "../series-order.ts";
import type { Zone } from "../zone.ts";
import type { BytePlan } from "./byte-plan.ts";

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

/** Limit on the known rows in bytes, so that memory does not grow with a file in which all rows differ. */
const KNOWN_BYTES_MAX = 8_000_000;
/** Rough size of a row and of a reading in memory, beside the key. */
const ROW_BYTES = 200;
const READING_BYTES = 150;
const POINTER_BYTES = 8;
const SLOTS_FIRST = 64;
const HASH_START = 0x811c9dc5 | 0;
const HASH_PRIME = 0x01000193;

/** Such a whole number is exact as a double, and so is its quotient by a power of ten rounded as its text would be. */
const DIGITS_MAX = 15;
const POWERS = Float64Array.from({ length: DIGITS_MAX + 1 }, (_, places) => 10 ** places);
const MINUS = 45;
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

// Numbers read from the bytes of a cell, where they are short decimals.

/**
 * The number between two places: digits, with a decimal mark and further digits if there are any. NaN for a cell that
 * is not of this kind: it may still be a number.
 */
function byteNumber(bytes: Uint8Array, from: number, to: number, mark: number): number {
  const isNegative = from < to && bytes[from] === MINUS;
  const first = isNegative ? from + 1 : from;
  let whole = 0;
  let marked = -1;
  for (let at = first; at < to; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte >= 48 && byte <= 57) whole = whole * 10 + (byte - 48);
    else if (byte === mark && marked === -1 && at > first) marked = at;
    else return Number.NaN;
  }
  const digits = to - first - (marked === -1 ? 0 : 1);
  if (digits < 1 || digits > DIGITS_MAX || marked === to - 1) return Number.NaN;
  const value = marked === -1 ? whole : whole / (POWERS[to - 1 - marked] ?? 1);
  return isNegative ? -value : value;
}

// Rows that the mapper took, known by the cells on which their readings depend: found by the bytes of these cells,
// without a text for any of them.

/** The part of the readings of a value column that is not date or value. */
interface KnownReading extends Pick<Reading, "version" | "tags" | "batchTags"> {
  readonly group: Group;
  /** Index of version and tags, see `ReadingIndex.extra`, and the count of clearings for which it holds. */
  extra: number;
  cleared: number;
}

interface KnownRow {
  /** The cells, each followed by a delimiter. */
  readonly key: Uint8Array;
  readonly hash: number;
  /** By value columns, or on rows of a day by statuses; undefined where none was learned. */
  readonly readings: (KnownReading | undefined)[];
  /** Two value columns have one target and version: such rows are compared by the mapper. */
  isShared: boolean;
  /** The series whose order rows with local times follow. */
  passed: Passed | undefined;
  /** The row that came after it the last time: files mostly repeat the order of their series. */
  next: KnownRow | undefined;
}

class KnownRows {
  readonly #columns: readonly number[];
  readonly #delimiter: number;
  readonly #values: number;
  /** Open addressing; the length is a power of two. */
  #slots: (KnownRow | undefined)[] = emptySlots(SLOTS_FIRST);
  #count = 0;
  #bytes = 0;
  /** Rows that were found, less those that were added. Far below zero in a file in which all rows differ. */
  gain = 0;
  #latest: KnownRow | undefined;

  /** `columns`: positions of the cells that make the key. `values`: usual number of readings. */
  constructor(columns: readonly number[], delimiter: number, values: number) {
    this.#columns = columns;
    this.#delimiter = delimiter;
    this.#values = values;
  }

  /** The known row with these cells; `starts` holds where each cell begins, and where the cell after the last would. */
  find(bytes: Uint8Array, starts: Int32Array): KnownRow | undefined {
    const before = this.#latest;
    const guess = before?.next;
    if (guess !== undefined && this.#fits(guess.key, bytes, starts)) {
      this.#latest = guess;
      this.gain += 1;
      return guess;
    }
    const hash = this.#hash(bytes, starts);
    const found = this.#slots[this.#slotOf(hash, bytes, starts)];
    if (found !== undefined && before !== undefined) before.next = found;
    this.#latest = found;
    if (found !== undefined) this.gain += 1;
    return found;
  }

  /** Adds a row that `find` did not find. */
  add(bytes: Uint8Array, starts: Int32Array): KnownRow {
    if (this.#bytes >= KNOWN_BYTES_MAX) this.#clear();
    if (2 * (this.#count + 1) > this.#slots.length) this.#grow();
    const row: KnownRow = {
      key: this.#keyOf(bytes, starts),
      hash: this.#hash(bytes, starts),
      readings: new Array(this.#values).fill(undefined),
      isShared: false,
      passed: undefined,
      next: undefined,
    };
    this.#slots[this.#slotOf(row.hash, bytes, starts)] = row;
    this.#count += 1;
    this.#bytes += ROW_BYTES + row.key.length + POINTER_BYTES * this.#values;
    this.gain -= 1;
    this.#latest = row;
    return row;
  }

  /** Adds a reading to a row, if that has none in this place. */
  learn({ readings }: KnownRow, place: number, reading: KnownReading): void {
    if (readings[place] !== undefined) return;
    readings[place] = reading;
    this.#bytes += READING_BYTES;
  }

  #slotOf(hash: number, bytes: Uint8Array, starts: Int32Array): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const row = slots[slot];
      if (row === undefined || (row.hash === hash && this.#fits(row.key, bytes, starts))) return slot;
    }
  }

  #fits(key: Uint8Array, bytes: Uint8Array, starts: Int32Array): boolean {
    let place = 0;
    for (const column of this.#columns) {
      const from = starts[column] ?? 0;
      const length = (starts[column + 1] ?? 0) - 1 - from;
      if (key[place + length] !== this.#delimiter) return false;
      for (let at = 0; at < length; at += 1) if (key[place + at] !== bytes[from + at]) return false;
      place += length + 1;
    }
    return place === key.length;
  }

  /** FNV-1a. */
  #hash(bytes: Uint8Array, starts: Int32Array): number {
    let hash = HASH_START;
    for (const column of this.#columns) {
      const to = (starts[column + 1] ?? 0) - 1;
      for (let at = starts[column] ?? 0; at < to; at += 1) hash = Math.imul(hash ^ (bytes[at] ?? 0), HASH_PRIME);
      hash = Math.imul(hash ^ this.#delimiter, HASH_PRIME);
    }
    // The low bits choose the slot.
    return hash ^ (hash >>> 15);
  }

  #keyOf(bytes: Uint8Array, starts: Int32Array): Uint8Array {
    const cells = this.#columns.map((column) => bytes.subarray(starts[column], (starts[column + 1] ?? 0) - 1));
    const key = new Uint8Array(cells.reduce((sum, { length }) => sum + length + 1, 0));
    let place = 0;
    for (const cell of cells) {
      key.set(cell, place);
      key[place + cell.length] = this.#delimiter;
      place += cell.length + 1;
    }
    return key;
  }

  #grow(): void {
    const slots = emptySlots(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (const row of this.#slots) {
      if (row === undefined) continue;
      let slot = row.hash & mask;
      while (slots[slot] !== undefined) slot = (slot + 1) & mask;
      slots[slot] = row;
    }
    this.#slots = slots;
  }

  #clear(): void {
    this.#slots = emptySlots(SLOTS_FIRST);
    this.#count = 0;
    this.#bytes = 0;
    this.#latest = undefined;
  }
}

function emptySlots(length: number): (KnownRow | undefined)[] {
  return new Array<KnownRow | undefined>(length).fill(undefined);
}

// The readings that the mapper emits for a row, recorded for rows of which more may follow.

interface EmittedReading extends Pick<Reading, "version" | "tags" | "batchTags"> {
  readonly group: Group;
  /** Epoch milliseconds; NaN for a date that is not known yet. */
  readonly date: number;
  readonly value: number;
  /** Line in the file; 0 when unknown. */
  readonly row: number;
  /** Index of the sheet; 0 when there is none. */
  readonly sheet: number;
}

export class Emitted {
  isRecorded = false;
  #readings: EmittedReading[] = [];

  add(reading: EmittedReading): void {
    this.#readings.push(reading);
  }

  /** The readings since the last call. */
  take(): readonly EmittedReading[] {
    const readings = this.#readings;
    this.#readings = [];
    return readings;
  }
}
