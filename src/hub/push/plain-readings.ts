/**
 * Reads `{"date":"2026-03-01T00:15:00Z","value":12.5}` from the bytes of valid JSON; the result of the latest is in its
 * fields.
 */
import { plainInstantMs } from "../time.ts";

const OTHER = -1;
const QUOTE = 0x22;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;
const CLOSE_OBJECT = 0x7d;

const BEFORE_DATE = Buffer.from('{"date":"');
const BEFORE_VALUE = Buffer.from('","value":');
const DAY_MS = 86_400_000;
/** A whole number of so many digits is exact, and so are the powers of ten that it is divided by. */
const DIGITS_MAX = 15;
const POWERS = Array.from({ length: DIGITS_MAX + 1 }, (_, power) => 10 ** power);
/** Characters of a day with the T behind it. */
const DAY = 11;

export class PlainReading {
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
