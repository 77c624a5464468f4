/**
 * Elements of a push in the form that most programs write: known bytes that name the variable, then readings
 * `{"date":"2026-03-01T00:15:00Z","value":12.5}` without blanks. Their bytes become columns without an object or a text
 * for any of them. Of an element that names a variable for the first time, the beginning is read as all are in
 * `readPushParts`, and an element of another form is read so as a whole.
 */
import { identifierKind, PushBodyFault, type PushElement, readElement, readPushParts } from "#wire/index.ts";
import { endOfString, skipBlanks } from "#wire/push-scan.ts";
import type { ReadingColumns } from "../store/columns.ts";
import type { VariableFacts } from "../store/records.ts";
import { endOfTarget, type TargetBytes, type TargetQuery } from "../store/targets.ts";
import { plainInstantMs } from "../time.ts";

export interface PlainParts {
  readonly targets: TargetBytes;
  readonly columns: ReadingColumns;
  /** Index of the operation in its group. */
  readonly index: number;
  /** The latest date that a reading may have. */
  readonly lastMs: number;
  /** Whether an element of the operation may name its variable in this way. */
  admits(kind: TargetQuery["by"]): boolean;
  /** An element of the operation named its variable in this way. */
  settle(kind: TargetQuery["by"]): void;
}

const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;
const BEFORE_DATE = Buffer.from('{"date":"');
const BEFORE_VALUE = Buffer.from('","value":');
const DAY_MS = 86_400_000;
/** A whole number of so many digits is exact, and so are the powers of ten that it is divided by. */
const DIGITS_MAX = 15;
const POWERS = Array.from({ length: DIGITS_MAX + 1 }, (_, power) => 10 ** power);
/** Characters of a day with the T behind it. */
const DAY = 11;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OTHER = -1;

interface Head {
  /** Its bytes. */
  readonly from: number;
  readonly to: number;
  readonly kind: TargetQuery["by"];
  readonly element: PushElement;
}

export class PlainElements {
  /** Readings of plain elements, which are all stored. */
  taken = 0;
  readonly #bytes: Buffer;
  readonly #parts: PlainParts;
  readonly #reading: PlainReading;
  /** The beginning that was yielded last; null: a whole element was. */
  #head: Head | null = null;

  constructor(body: Uint8Array, parts: PlainParts) {
    this.#bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    this.#parts = parts;
    this.#reading = new PlainReading(this.#bytes);
  }

  /**
   * The elements of other forms, and before an element whose bytes named no variable yet the beginning of it, without
   * readings (`isHead`); plain elements go to the columns. The body is valid.
   */
  *others(): Generator<PushElement> {
    const bytes = this.#bytes;
    if (!this.#isPlain()) {
      yield* readPushParts(bytes);
      return;
    }
    for (let at = 1; ; at += 1) {
      const begin = skipBlanks(bytes, at);
      let end = this.#take(begin);
      this.#head = end === OTHER ? this.#headAt(begin) : null;
      if (this.#head !== null) {
        yield this.#head.element;
        this.#head = null;
        end = this.#take(begin);
      }
      if (end === OTHER) {
        end = endOfElement(bytes, begin);
        yield* readPushParts(Buffer.concat([OPENING, bytes.subarray(begin, end), CLOSING]));
      }
      at = skipBlanks(bytes, end);
      if (bytes[at] !== COMMA) return;
    }
  }

  /** Whether the element that was yielded last is the beginning of one, which has no readings. */
  get isHead(): boolean {
    return this.#head !== null;
  }

  /** The elements that begin with the bytes of the beginning that was yielded last name this variable. */
  learn(variable: VariableFacts): void {
    if (this.#head === null) return;
    const { from, to, kind } = this.#head;
    this.#parts.targets.add(this.#bytes, from, to, { kind, variable });
  }

  /** Null: its variable is known, or its names have another form. */
  #headAt(from: number): Head | null {
    const bytes = this.#bytes;
    const to = endOfTarget(bytes, from);
    if (to < 0 || this.#parts.targets.find(bytes, from) !== undefined) return null;
    const element = headOf(bytes.toString("utf8", from, to));
    const kind = element === null ? null : identifierKind(element);
    if (element === null || kind === null || element.version !== undefined) return null;
    return { from, to, kind, element };
  }

  /** By its beginning: a body whose first element has another form mostly has none of this one. */
  #isPlain(): boolean {
    const bytes = this.#bytes;
    if (bytes[0] !== OPEN_ARRAY || bytes[1] !== OPEN_OBJECT) return false;
    const data = endOfTarget(bytes, 1);
    return data >= 0 && this.#reading.read(data) >= 0;
  }

  /** The position after a plain element; `OTHER`: nothing was taken. */
  #take(begin: number): number {
    const { targets, columns, index, lastMs, admits, settle } = this.#parts;
    const bytes = this.#bytes;
    const reading = this.#reading;
    const known = targets.find(bytes, begin);
    if (known === undefined || !admits(known.target.kind)) return OTHER;
    const before = columns.length;
    const position = columns.positionOf(known.target.variable);
    for (let at = begin + known.length; ; ) {
      at = reading.read(at);
      if (at < 0 || reading.atMs > lastMs || columns.isFull) break;
      columns.add(index, position, reading.atMs, reading.value, null);
      const next = bytes[at];
      at += 1;
      if (next === COMMA) continue;
      if (next !== CLOSE_ARRAY || bytes[at] !== CLOSE_OBJECT) break;
      settle(known.target.kind);
      this.taken += columns.length - before;
      return at + 1;
    }
    columns.truncate(before);
    return OTHER;
  }
}

const OPENING = Buffer.from("[");
const CLOSING = Buffer.from("]");

/** The beginning of an element, up to its readings. Null: it has other fields than these, or names of another case. */
function headOf(text: string): PushElement | null {
  try {
    const alone: unknown = JSON.parse(`${text}]}`);
    const { data: _, ...target } = readElement(alone, 0);
    const names = Object.keys(Object(alone));
    const same = names.every(
      (name) => name === "data" || Reflect.get(Object(alone), name) === Reflect.get(target, name),
    );
    return same && names.length === Object.keys(target).length + 1 ? { ...target, data: [] } : null;
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof PushBodyFault) return null;
    throw thrown;
  }
}

/** The position after the object that begins there; only strings and brackets count. */
function endOfElement(bytes: Uint8Array, begin: number): number {
  let depth = 0;
  for (let at = begin; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1;
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return bytes.length;
}

/**
 * Reads `{"date":"2026-03-01T00:15:00Z","value":12.5}` from the bytes of valid JSON; the result of the latest is in its
 * fields.
 */
class PlainReading {
  atMs = Number.NaN;
  value = Number.NaN;
  readonly #bytes: Buffer;
  /** Position and length of the latest date that was read, since most are that one again, or of its day. */
  #date = OTHER;
  #length = 0;
  #dayMs = Number.NaN;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The position after the reading; below zero: it has another form. */
  read(begin: number): number {
    if (!this.#holds(begin, BEFORE_DATE)) return OTHER;
    const date = begin + BEFORE_DATE.length;
    const end = this.#afterDate(date);
    if (end < 0 || !this.#holds(end, BEFORE_VALUE)) return OTHER;
    return this.#afterValue(end + BEFORE_VALUE.length);
  }

  #holds(at: number, wanted: Uint8Array): boolean {
    const bytes = this.#bytes;
    for (let index = 0; index < wanted.length; index += 1) if (bytes[at + index] !== wanted[index]) return false;
    return true;
  }

  #isSame(at: number, length: number): boolean {
    const bytes = this.#bytes;
    const known = this.#date;
    // The ends of dates differ most.
    for (let index = length - 1; index >= 0; index -= 1) if (bytes[at + index] !== bytes[known + index]) return false;
    return true;
  }

  #afterDate(at: number): number {
    const bytes = this.#bytes;
    const length = bytes[at + 19] === LETTER_Z ? 20 : 24;
    if (bytes[at + length] !== QUOTE) return OTHER;
    if (this.#date >= 0 && length === this.#length && this.#isSame(at, length)) return at + length;
    const isSameDay = this.#date >= 0 && this.#isSame(at, DAY);
    const atMs = isSameDay ? this.#inDay(at, length) : this.#freshDay(at, length);
    if (Number.isNaN(atMs)) return OTHER;
    this.atMs = atMs;
    this.#date = at;
    this.#length = length;
    return at + length;
  }

  #inDay(at: number, length: number): number {
    const bytes = this.#bytes;
    if (bytes[at + length - 1] !== LETTER_Z || (length === 24 && bytes[at + 19] !== DOT)) return Number.NaN;
    if (bytes[at + 13] !== COLON || bytes[at + 16] !== COLON) return Number.NaN;
    const hour = this.#two(at + 11);
    const minute = this.#two(at + 14);
    const second = this.#two(at + 17);
    // NaN is not in range.
    if (!(hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN;
    const ms = length === 24 ? this.#two(at + 20) * 10 + (this.#two(at + 21) % 10) : 0;
    return this.#dayMs + ((hour * 60 + minute) * 60 + second) * 1_000 + ms;
  }

  #two(at: number): number {
    const [tens, ones] = [(this.#bytes[at] ?? 0) - ZERO, (this.#bytes[at + 1] ?? 0) - ZERO];
    return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
  }

  #freshDay(at: number, length: number): number {
    if (this.#bytes[at + DAY - 1] !== LETTER_T) return Number.NaN;
    const atMs = plainInstantMs(this.#bytes.toString("latin1", at, at + length));
    if (!Number.isNaN(atMs)) this.#dayMs = Math.floor(atMs / DAY_MS) * DAY_MS;
    return atMs;
  }

  /** The position after the brace behind the value. */
  #afterValue(begin: number): number {
    const bytes = this.#bytes;
    const isNegative = bytes[begin] === MINUS;
    const first = isNegative ? begin + 1 : begin;
    let digits = 0;
    let number = 0;
    let dot = OTHER;
    let at = first;
    for (; ; at += 1) {
      const digit = (bytes[at] ?? 0) - ZERO;
      if (digit >= 0 && digit <= 9) {
        number = number * 10 + digit;
        digits += 1;
      } else if (bytes[at] === DOT && dot < 0 && digits > 0) dot = at;
      else break;
    }
    const decimals = dot < 0 ? 0 : at - dot - 1;
    if (bytes[at] !== CLOSE_OBJECT || digits === 0 || digits > DIGITS_MAX) return OTHER;
    const value = number / (POWERS[decimals] ?? 1);
    this.value = isNegative ? -value : value;
    return at + 1;
  }
}
