/**
 * Builds push bodies from the index: one identifier kind a batch, at most the configured points and bytes. The same
 * readings give the same bytes.
 */
import type { BatchLimits, Place } from "./model.ts";
import type { ConflictJudge, Group, ReadingIndex } from "./reading-index.ts";
import { shorten } from "./rejections.ts";
import type { BatchBody } from "./segment/writer.ts";
import { lostReadings, type SortedReading } from "./spill.ts";

/** Totals of all batches. */
export interface BatchTotals {
  points: number;
  /** Number of readings that do not count, since their target, date and version occur again. */
  superseded: number;
  /** Earliest and latest date in epoch milliseconds; infinite without readings. */
  from: number;
  to: number;
}

const ROOM_FIRST = 64 * 1024;
/** Size limit of a date and a number, with the names of their fields. */
const READING_BYTES_MAX = 128;
const DAY_MS = 86_400_000;
const [ZERO, COLON, POINT, MINUS, ZULU] = [48, 58, 46, 45, 90];
const DECIMALS_SCALE = 1e6;
const DIGITS_EXACT_BELOW = 1e15;
/** Division of smaller whole numbers is that of 32-bit integers. */
const SMALL_BELOW = 2 ** 31;

const DATE_FIELD = '{"date":"';
const VALUE_FIELD = wordsOf('","value":');

/** About 1 MB. */
const DAYS_MAX = 4096;
/** The texts of days, which cost more than all else of a reading: the targets of a file share their days. */
const dayTexts = new Map<number, Words>();

/** Both digits of the numbers below 100. */
const TWO_DIGITS = Uint16Array.from(
  { length: 100 },
  (_, number) => 256 * (ZERO + Math.floor(number / 10)) + ZERO + (number % 10),
);

/** A reading that is too large for any batch. */
export class OversizeError extends Error {
  readonly place: Place;

  constructor(target: string, bytes: number, limit: number, place: Place) {
    super(
      `a reading of ${shorten(target)} takes ${bytes} bytes as a batch of its own, more than the limit of ${limit}`,
    );
    this.name = "OversizeError";
    this.place = place;
  }
}

/** Ends the readings of an element; more elements may follow. */
const ELEMENT_END = "]}";
const END = "]";
const POINTS_FIRST = 1024;

/** Limits on the readings and bytes of a builder that is kept for the next file. */
const POINTS_KEPT_MAX = 16 * POINTS_FIRST;
const BYTES_KEPT_MAX = 1024 * 1024;

/** The builder of a small file is reused, see `takeColumns`. */
let kept: BatchBuilder | null = null;

class BatchBuilder {
  #limits: BatchLimits;
  readonly #json = new JsonBytes();
  #open: Group | null = null;
  /** The tags of the open element, see `Extra.element`. */
  #element = "";
  #rows = new Uint32Array(POINTS_FIRST);
  #sheets = new Uint32Array(POINTS_FIRST);
  #hasSheets = false;
  points = 0;
  /** Bytes that the batch would have had with the last reading. */
  tried = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  static taken(limits: BatchLimits): BatchBuilder {
    const builder = kept ?? new BatchBuilder(limits);
    kept = null;
    builder.#limits = limits;
    return builder;
  }

  /** Releases the builder for reuse; the caller must no longer use it. */
  release(): void {
    this.#empty();
    if (this.#rows.length <= POINTS_KEPT_MAX && this.#json.capacity <= BYTES_KEPT_MAX) kept = this;
  }

  /** False when the batch has no space for the reading. */
  add(group: Group, reading: Readonly<SortedReading>): boolean {
    if (this.points >= this.#limits.pointsMax) return false;
    const json = this.#json;
    const before = json.length;
    const { extra, date, value } = reading;
    if (this.#open === group && this.#element === extra.element) json.text(",", 1);
    else this.#begin(group, extra.element);
    json.reading(date, value);
    if (extra.bytes > 0) json.text(extra.json, extra.bytes);
    json.text("}", 1);
    this.tried = json.length + ELEMENT_END.length + END.length;
    if (this.tried > this.#limits.bytesMax) {
      json.length = before;
      return false;
    }
    this.#open = group;
    this.#element = extra.element;
    this.#note(reading.row, reading.sheet);
    return true;
  }

  #begin(group: Group, element: string): void {
    const head = `${this.#open === null ? "[" : `${ELEMENT_END},`}${group.headWith(element)}`;
    this.#json.text(head, Buffer.byteLength(head));
  }

  #note(row: number, sheet: number): void {
    if (this.points === this.#rows.length) {
      this.#rows = twice(this.#rows);
      this.#sheets = twice(this.#sheets);
    }
    this.#rows[this.points] = row;
    this.#sheets[this.points] = sheet;
    if (sheet !== 0) this.#hasSheets = true;
    this.points += 1;
  }

  take(): BatchBody {
    const json = this.#json;
    json.text(ELEMENT_END, ELEMENT_END.length);
    json.text(END, END.length);
    const body = {
      bytes: json.written,
      points: this.points,
      rows: this.#rows.subarray(0, this.points),
      sheets: this.#hasSheets ? this.#sheets.subarray(0, this.points) : null,
    };
    this.#empty();
    return body;
  }

  #empty(): void {
    this.#json.length = 0;
    this.#open = null;
    this.#hasSheets = false;
    this.points = 0;
  }
}

function twice(column: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(2 * column.length);
  longer.set(column);
  return longer;
}

export function noTotals(): BatchTotals {
  return { points: 0, superseded: 0, from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY };
}

/** The batches of all readings, in order. Fills `totals` and the points of each group. Throws an `OversizeError`. */
export function* batchBodies(
  index: ReadingIndex,
  limits: BatchLimits,
  totals: BatchTotals,
  judge: ConflictJudge,
): Generator<BatchBody> {
  const builder = BatchBuilder.taken(limits);
  try {
    yield* bodiesBy(builder, index, limits, totals, judge);
  } finally {
    builder.release();
  }
}

function* bodiesBy(
  builder: BatchBuilder,
  index: ReadingIndex,
  limits: BatchLimits,
  totals: BatchTotals,
  judge: ConflictJudge,
): Generator<BatchBody> {
  const readings = index.settled(judge);
  let group: Group | undefined;
  while (readings.next()) {
    if (group?.rank !== readings.rank) {
      const next = groupOf(index, readings.rank);
      if (group?.kind !== next.kind && builder.points > 0) yield builder.take();
      group = next;
    }
    if (!builder.add(group, readings)) {
      if (builder.points > 0) yield builder.take();
      if (!builder.add(group, readings)) throw oversize(index, group, readings, builder.tried, limits);
    }
    // The readings of a group come in the order of their dates.
    if (group.points === 0) group.from = readings.date;
    group.to = readings.date;
    group.points += 1;
    if (readings.extra.version === "") group.untagged += 1;
    totals.points += 1;
    if (readings.date < totals.from) totals.from = readings.date;
    if (readings.date > totals.to) totals.to = readings.date;
  }
  if (builder.points > 0) yield builder.take();
  totals.superseded = readings.superseded;
}

function groupOf(index: ReadingIndex, rank: number): Group {
  const group = index.groupAt(rank);
  if (group === undefined) throw lostReadings("the spilled readings name a target that is not known");
  return group;
}

function oversize(
  index: ReadingIndex,
  group: Group,
  { row, sheet }: Readonly<SortedReading>,
  bytes: number,
  { bytesMax }: BatchLimits,
): OversizeError {
  const place = { row: row === 0 ? undefined : row, sheet: index.sheetName(sheet) };
  return new OversizeError(group.words, bytes, bytesMax, place);
}

/** A text of ASCII for `putWords`. */
interface Words {
  /** Four bytes each; the last is filled up. */
  readonly words: Uint32Array;
  readonly length: number;
}

function wordsOf(text: string): Words {
  const words = new Uint32Array(Math.ceil(text.length / 4));
  const view = new DataView(words.buffer);
  for (let at = 0; at < text.length; at += 1) view.setUint8(at, text.charCodeAt(at));
  return { words: words.map((_, nth) => view.getUint32(4 * nth)), length: text.length };
}

/** `{"date":"2026-03-01T` */
function dayText(day: number): Words {
  let text = dayTexts.get(day);
  if (text === undefined) {
    text = wordsOf(`${DATE_FIELD}${new Date(day * DAY_MS).toISOString().slice(0, 11)}`);
    if (dayTexts.size >= DAYS_MAX) dayTexts.clear();
    dayTexts.set(day, text);
  }
  return text;
}

/** JSON written as bytes, since a string for each reading would cost more than the reading. */
export class JsonBytes {
  #bytes = Buffer.allocUnsafeSlow(ROOM_FIRST);
  #view = viewOf(this.#bytes);
  length = 0;
  #day = Number.NaN;
  /** The text of the latest day: consecutive readings share a day. */
  #dayWords: Words = VALUE_FIELD;

  /** Capacity in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** The bytes written so far. The memory is reused after `length` was set back. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  text(text: string, bytes: number): void {
    this.#reserve(bytes);
    // A call of the encoder costs several times as much as the byte of a comma or a brace.
    if (bytes === 1) this.#bytes[this.length] = text.charCodeAt(0);
    else this.#bytes.write(text, this.length, bytes, "utf8");
    this.length += bytes;
  }

  /** `{"date":"2026-03-01T00:15:00Z","value":1.5`, with milliseconds only when they are not zero. */
  reading(epochMs: number, value: number): void {
    this.#reserve(READING_BYTES_MAX);
    const bytes = this.#bytes;
    const view = this.#view;
    const day = Math.floor(epochMs / DAY_MS);
    if (day !== this.#day) {
      this.#dayWords = dayText(day);
      this.#day = day;
    }
    let to = putWords(view, this.length, this.#dayWords);
    to = putTime(view, to, epochMs - day * DAY_MS);
    to = putWords(view, to, VALUE_FIELD);
    this.length = putNumber(bytes, to, value);
  }

  #reserve(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.written.copy(larger);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

/** The following functions write at a place with enough room, and return the place after it. */
function putWords(view: DataView, at: number, { words, length }: Words): number {
  for (let nth = 0; nth < words.length; nth += 1) view.setUint32(at + 4 * nth, words[nth] ?? 0);
  return at + length;
}

function putTwo(view: DataView, at: number, number: number): void {
  view.setUint16(at, TWO_DIGITS[number] ?? 0);
}

function viewOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}

/** `00:15:00Z` of the milliseconds of a day, which a small integer holds. */
function putTime(view: DataView, at: number, dayMs: number): number {
  const seconds = (dayMs / 1000) | 0;
  const ms = dayMs - seconds * 1000;
  const minutes = (seconds / 60) | 0;
  const hours = (minutes / 60) | 0;
  putTwo(view, at, hours);
  view.setUint8(at + 2, COLON);
  putTwo(view, at + 3, minutes - hours * 60);
  view.setUint8(at + 5, COLON);
  putTwo(view, at + 6, seconds - minutes * 60);
  let to = at + 8;
  if (ms !== 0) {
    view.setUint8(to, POINT);
    view.setUint8(to + 1, ZERO + Math.floor(ms / 100));
    putTwo(view, to + 2, ms % 100);
    to += 4;
  }
  view.setUint8(to, ZULU);
  return to + 1;
}

/** Writes as `String(value)` does; most values have few decimals, and a fast path finds their digits. */
function putNumber(bytes: Uint8Array, at: number, value: number): number {
  const scaled = Math.round(value * DECIMALS_SCALE);
  // Up to 15 digits identify a number, so these are the shortest digits of this value.
  if (scaled / DECIMALS_SCALE !== value || scaled >= DIGITS_EXACT_BELOW || scaled <= -DIGITS_EXACT_BELOW)
    return putText(bytes, at, String(value));
  let to = at;
  if (scaled < 0) bytes[to++] = MINUS;
  const size = Math.abs(scaled);
  const whole = Math.floor(size / DECIMALS_SCALE);
  to = putDigits(bytes, to, whole, 1);
  let decimals = size - whole * DECIMALS_SCALE;
  if (decimals === 0) return to;
  let places = 6;
  if (decimals % 1000 === 0) {
    decimals /= 1000;
    places = 3;
  }
  while (decimals % 10 === 0) {
    decimals /= 10;
    places -= 1;
  }
  bytes[to] = POINT;
  return putDigits(bytes, to + 1, decimals, places);
}

/** Digits of a whole number, with leading zeros up to the given number of places. */
function putDigits(bytes: Uint8Array, at: number, number: number, places: number): number {
  let count = 1;
  for (let limit = 10; limit <= number; limit *= 10) count += 1;
  const end = at + Math.max(count, places);
  let rest = number;
  let place = end - 1;
  for (; rest >= SMALL_BELOW; place -= 1) {
    const tens = Math.floor(rest / 10);
    bytes[place] = ZERO + rest - tens * 10;
    rest = tens;
  }
  for (; place >= at; place -= 1) {
    const tens = (rest / 10) | 0;
    bytes[place] = ZERO + rest - tens * 10;
    rest = tens;
  }
  return end;
}

function putText(bytes: Uint8Array, at: number, text: string): number {
  for (let nth = 0; nth < text.length; nth += 1) bytes[at + nth] = text.charCodeAt(nth);
  return at + text.length;
}
