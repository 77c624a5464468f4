/**
 * Rows that the mapper took, known by the cells on which their readings depend: found by the bytes of these cells,
 * without a text for any of them.
 */
import type { Reading } from "../mapper.ts";
import type { Group } from "../reading-index.ts";
import type { Passed } from "../series-order.ts";

/** The part of the readings of a value column that is not date or value. */
export interface KnownReading extends Pick<Reading, "version" | "tags" | "batchTags"> {
  readonly group: Group;
  /** Index of version and tags, see `ReadingIndex.extra`, and the count of clearings for which it holds. */
  extra: number;
  cleared: number;
}

export interface KnownRow {
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

/** Limit on the known rows in bytes, so that memory does not grow with a file in which all rows differ. */
const KNOWN_BYTES_MAX = 8_000_000;
/** Rough size of a row and of a reading in memory, beside the key. */
const ROW_BYTES = 200;
const READING_BYTES = 150;
const POINTER_BYTES = 8;
const SLOTS_FIRST = 64;
const HASH_START = 0x811c9dc5 | 0;
const HASH_PRIME = 0x01000193;

export class KnownRows {
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
