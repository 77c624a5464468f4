/**
 * The readings of a large file, on disk: each time that the columns in memory are full they are sorted and appended as
 * a run of records. The file has no name once it is open, so that it is gone however the process ends.
 *
 * A record is 24 bytes in the order of this machine: rank and row (each 4 bytes), date and value (8). When the highest
 * bit of the rank is set, more follows: sheet and length of a text (4), then version and tags as that text, filled up
 * to a multiple of 8.
 */
import { closeSync, mkdirSync, openSync, readSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { TransientError } from "#core/errors.ts";
import { type Extra, extraOf, extraText, NO_EXTRA } from "./extras.ts";
import { writeAll } from "./segment/row-index-part.ts";

const RECORD_BYTES = 24;
const MORE_BYTES = 8;
const MORE = 2 ** 31;
const WRITE_BYTES = 256 * 1024;
/** Limit for all runs while they are merged. */
const READ_BYTES = 8 * 1024 * 1024;
const READ_BYTES_MIN = 4 * 1024;
const READ_BYTES_MAX = 256 * 1024;

const NO_TEXT = Buffer.alloc(0);

/** A part of the file: one sorted run. */
export interface SpilledRun {
  readonly offset: number;
  readonly bytes: number;
}

/** One reading in the merge. */
export interface SortedReading {
  /** Rank of its group among all, see `Group.rank`. */
  rank: number;
  /** Epoch milliseconds. */
  date: number;
  value: number;
  row: number;
  sheet: number;
  extra: Extra;
}

/** Sorted readings, one after another; the fields hold the current one. */
export interface SortedReadings extends Readonly<SortedReading> {
  /** Moves to the next one; false at the end. */
  next(): boolean;
}

/** How the readings of another index become those of this one. */
export interface MovedRows {
  /** Ranks by the ranks that were written. */
  readonly rankOf: (rank: number) => number;
  /** Added to each row. */
  readonly lines: number;
}

export class SpillFile {
  readonly #file: number;
  readonly runs: SpilledRun[] = [];
  #bytes = 0;

  /**
   * Creates the file and unlinks its name. With `lend` the name stays, for a thread of this process that opens the
   * file by `borrow`. Throws the disk's error.
   */
  constructor(path: string, use: "own" | "lend" | "borrow" = "own") {
    mkdirSync(dirname(path), { recursive: true });
    this.#file = openSync(path, use === "borrow" ? "r+" : "w+", 0o600);
    if (use === "lend") return;
    try {
      rmSync(path);
    } catch (thrown) {
      closeSync(this.#file);
      throw thrown;
    }
  }

  /** Appends sorted readings as one run. */
  write(readings: SortedReadings): void {
    const offset = this.#bytes;
    const page = new Page(WRITE_BYTES);
    let used = 0;
    while (readings.next()) {
      const { extra, sheet } = readings;
      const text = extra === NO_EXTRA ? NO_TEXT : Buffer.from(extraText(extra));
      const length = RECORD_BYTES + (text.length === 0 && sheet === 0 ? 0 : MORE_BYTES + padded(text.length));
      if (used + length > page.bytes.length) {
        this.#append(page.bytes.subarray(0, used));
        used = 0;
        page.reserve(length);
      }
      page.put(used, readings);
      if (length > RECORD_BYTES) page.putMore(used, sheet, text);
      used += length;
    }
    this.#append(page.bytes.subarray(0, used));
    this.runs.push({ offset, bytes: this.#bytes - offset });
  }

  #append(bytes: Uint8Array): void {
    this.#bytes += writeAll(this.#file, bytes, this.#bytes);
  }

  /** All runs, to be read in parallel with others: so many in all. */
  open(count: number, moved: MovedRows | null = null): SortedReadings[] {
    const share = READ_BYTES / Math.max(1, count);
    const bytes = Math.max(READ_BYTES_MIN, Math.min(READ_BYTES_MAX, share));
    return this.runs.map((run) => new SpilledReadings(this.#file, run, padded(Math.floor(bytes)), moved));
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** The disk returned other bytes than were written. */
export function lostReadings(message: string): TransientError {
  return new TransientError("HG-MAP-014", {
    operation: "read back readings",
    subject: "spill file",
    message,
  });
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

/** A buffer, with views for its numbers. */
class Page {
  bytes: Buffer;
  #words: Uint32Array;
  #numbers: Float64Array;

  constructor(length: number) {
    const memory = new ArrayBuffer(padded(length));
    this.bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
    this.#numbers = new Float64Array(memory);
  }

  /** Reserves so many bytes; the previous content may be lost. */
  reserve(length: number): void {
    if (length <= this.bytes.length) return;
    const larger = new Page(length);
    this.bytes = larger.bytes;
    this.#words = larger.#words;
    this.#numbers = larger.#numbers;
  }

  put(at: number, reading: Readonly<SortedReading>): void {
    this.#words[at / 4] = reading.rank;
    this.#words[at / 4 + 1] = reading.row;
    this.#numbers[at / 8 + 1] = reading.date;
    this.#numbers[at / 8 + 2] = reading.value;
  }

  putMore(at: number, sheet: number, text: Buffer): void {
    const more = at + RECORD_BYTES;
    this.#words[at / 4] = (this.#words[at / 4] ?? 0) + MORE;
    this.#words[more / 4] = sheet;
    this.#words[more / 4 + 1] = text.length;
    text.copy(this.bytes, more + MORE_BYTES);
  }

  /** Whether more fields follow; fills everything of `reading` but sheet and extra. */
  take(at: number, reading: SortedReading): boolean {
    const rank = this.#words[at / 4] ?? 0;
    reading.rank = rank % MORE;
    reading.row = this.#words[at / 4 + 1] ?? 0;
    reading.date = this.#numbers[at / 8 + 1] ?? 0;
    reading.value = this.#numbers[at / 8 + 2] ?? 0;
    return rank >= MORE;
  }

  /** Sheet and length of the text. */
  takeMore(at: number): [number, number] {
    return [this.#words[at / 4] ?? 0, this.#words[at / 4 + 1] ?? 0];
  }
}

class SpilledReadings implements SortedReadings {
  rank = 0;
  date = 0;
  value = 0;
  row = 0;
  sheet = 0;
  extra = NO_EXTRA;
  readonly #file: number;
  readonly #page: Page;
  #offset: number;
  readonly #end: number;
  /** Bytes of the page that are read from the file, and bytes of it that are taken. */
  #filled = 0;
  #taken = 0;
  #text = "";
  #textExtra = NO_EXTRA;
  readonly #moved: MovedRows | null;

  constructor(file: number, { offset, bytes }: SpilledRun, pageBytes: number, moved: MovedRows | null) {
    this.#moved = moved;
    this.#file = file;
    this.#page = new Page(pageBytes);
    this.#offset = offset;
    this.#end = offset + bytes;
  }

  next(): boolean {
    if (this.#filled - this.#taken < RECORD_BYTES && !this.#fill(RECORD_BYTES)) return false;
    const hasMore = this.#page.take(this.#taken, this);
    this.#taken += RECORD_BYTES;
    if (this.#moved !== null) this.#move(this.#moved);
    this.sheet = 0;
    this.extra = NO_EXTRA;
    if (hasMore) this.#takeMore();
    return true;
  }

  #move({ rankOf, lines }: MovedRows): void {
    this.rank = rankOf(this.rank);
    if (this.row !== 0) this.row += lines;
  }

  #takeMore(): void {
    if (this.#filled - this.#taken < MORE_BYTES) this.#fill(MORE_BYTES);
    const [sheet, length] = this.#page.takeMore(this.#taken);
    this.sheet = sheet;
    const whole = MORE_BYTES + padded(length);
    if (this.#filled - this.#taken < whole) this.#fill(whole);
    if (length > 0) this.extra = this.#extraAt(this.#taken + MORE_BYTES, length);
    this.#taken += whole;
  }

  #extraAt(from: number, length: number): Extra {
    const text = this.#page.bytes.toString("utf8", from, from + length);
    // The text mostly equals that of the previous reading.
    if (text !== this.#text) {
      this.#text = text;
      this.#textExtra = extraOf(text);
    }
    return this.#textExtra;
  }

  /**
   * Moves the rest to the start of the page and reads on, until so many bytes are there. False at the end of the run.
   */
  #fill(wanted: number): boolean {
    const left = Buffer.from(this.#page.bytes.subarray(this.#taken, this.#filled));
    this.#page.reserve(wanted);
    left.copy(this.#page.bytes);
    this.#taken = 0;
    this.#filled = left.length;
    while (this.#filled < wanted) {
      const capacity = Math.min(this.#page.bytes.length - this.#filled, this.#end - this.#offset);
      if (capacity === 0) return false;
      const read = readSync(this.#file, this.#page.bytes, this.#filled, capacity, this.#offset);
      if (read === 0) throw lostReadings("the spilled readings are shorter than what was written");
      this.#filled += read;
      this.#offset += read;
    }
    return true;
  }
}
