/**
 * Counts the readings of a push whose body has the usual form, without an object for any of them: the exact
 * names of the contract, no nulls, no tags, no escapes in texts. `readPushParts` reads every other body and
 * reports its faults.
 */
import { isUtf8 } from "node:buffer";

/** Bytes scanned before the function yields, so that a large body does not block other requests. */
const YIELD_BYTES = 1024 * 1024;

/** Positions in the body; below zero: the body has another form. */
type Position = number;
const OTHER: Position = -1;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

interface Field {
  readonly name: Uint8Array;
  readonly type: "string" | "integer" | "number" | "data";
  /** The bit of this field in a set of fields. */
  readonly bit: number;
}

const bytesOf = (text: string) => new TextEncoder().encode(text);
const field = (name: string, type: Field["type"], index: number): Field => ({
  name: bytesOf(name),
  type,
  bit: 1 << index,
});
const DATA = field("data", "data", 0);
const ELEMENT: readonly Field[] = [
  DATA,
  field("variableId", "integer", 1),
  field("sourceId", "integer", 2),
  field("variableTypeId", "integer", 3),
  field("sourceSerialNumber", "string", 4),
  field("sourceEan", "string", 5),
  field("sourceName", "string", 6),
  field("meterNumber", "string", 7),
  field("mappingConfig", "string", 8),
  field("version", "string", 9),
];
const DATE = field("date", "string", 0);
const VALUE = field("value", "number", 1);
const READING: readonly Field[] = [DATE, VALUE, field("version", "string", 2)];

/** The count, or null for a body of another form. */
export function* scanReadings(bytes: Uint8Array): Generator<void, number | null> {
  if (!isUtf8(bytes)) return null;
  let at = skipBlanks(bytes, 0);
  if (bytes[at] !== OPEN_ARRAY) return null;
  at = skipBlanks(bytes, at + 1);
  let yieldAt = at + YIELD_BYTES;
  let count = 0;
  let isFirst = true;
  const order: Field[] = [];
  while (bytes[at] !== CLOSE_ARRAY || !isFirst) {
    if (bytes[at] !== OPEN_OBJECT) return null;
    at = skipBlanks(bytes, at + 1);
    let met = 0;
    for (let place = 0; ; place += 1) {
      // Most elements have the fields of the one before, in its order.
      const before = order[place];
      const one: Field | undefined =
        before !== undefined && isNamed(bytes, at, before) ? before : fieldAt(bytes, at, ELEMENT);
      if (one === undefined || (met & one.bit) !== 0) return null;
      order[place] = one;
      met |= one.bit;
      at = valueAt(bytes, at, one);
      if (at < 0) return null;
      if (one === DATA) {
        if (bytes[at] !== OPEN_ARRAY) return null;
        at = skipBlanks(bytes, at + 1);
        if (bytes[at] === CLOSE_ARRAY) at += 1;
        else
          for (;;) {
            const begin = at;
            at = usualReadingAt(bytes, begin);
            if (at < 0) at = readingAt(bytes, begin);
            if (at < 0) return null;
            count += 1;
            at = skipBlanks(bytes, at);
            const next = bytes[at];
            at += 1;
            if (next === CLOSE_ARRAY) break;
            if (next !== COMMA) return null;
            at = skipBlanks(bytes, at);
            if (at < yieldAt) continue;
            yieldAt = at + YIELD_BYTES;
            yield;
          }
      }
      at = skipBlanks(bytes, at);
      const next = bytes[at];
      at = skipBlanks(bytes, at + 1);
      if (next === CLOSE_OBJECT) break;
      if (next !== COMMA) return null;
    }
    if ((met & DATA.bit) === 0) return null;
    isFirst = false;
    if (bytes[at] === CLOSE_ARRAY) break;
    if (bytes[at] !== COMMA) return null;
    at = skipBlanks(bytes, at + 1);
    if (at < yieldAt) continue;
    yieldAt = at + YIELD_BYTES;
    yield;
  }
  return skipBlanks(bytes, at + 1) === bytes.length ? count : null;
}

const BEFORE_DATE = bytesOf('{"date":');
const BEFORE_VALUE = bytesOf(',"value":');

/** As `readingAt`, in the form that nearly all have, at half the cost. */
function usualReadingAt(bytes: Uint8Array, begin: Position): Position {
  if (!holds(bytes, begin, BEFORE_DATE)) return OTHER;
  const date = afterString(bytes, begin + BEFORE_DATE.length);
  if (date < 0 || !holds(bytes, date, BEFORE_VALUE)) return OTHER;
  const end = afterNumber(bytes, date + BEFORE_VALUE.length, false);
  return end >= 0 && bytes[end] === CLOSE_OBJECT ? end + 1 : OTHER;
}

function holds(bytes: Uint8Array, at: Position, wanted: Uint8Array): boolean {
  for (let index = 0; index < wanted.length; index += 1) if (bytes[at + index] !== wanted[index]) return false;
  return true;
}

/** Returns the position after the object of a reading. */
function readingAt(bytes: Uint8Array, begin: Position): Position {
  if (bytes[begin] !== OPEN_OBJECT) return OTHER;
  let met = 0;
  for (let at = skipBlanks(bytes, begin + 1); ; ) {
    const one = fieldAt(bytes, at, READING);
    if (one === undefined || (met & one.bit) !== 0) return OTHER;
    met |= one.bit;
    at = valueAt(bytes, at, one);
    if (at < 0) return OTHER;
    at = skipBlanks(bytes, at);
    const next = bytes[at];
    at += 1;
    if (next === CLOSE_OBJECT) return (met & 3) === 3 ? at : OTHER;
    if (next !== COMMA) return OTHER;
    at = skipBlanks(bytes, at);
  }
}

/** The field whose quoted name begins at the position. */
function fieldAt(bytes: Uint8Array, at: Position, fields: readonly Field[]): Field | undefined {
  for (const one of fields) if (isNamed(bytes, at, one)) return one;
  return undefined;
}

function isNamed(bytes: Uint8Array, at: Position, { name }: Field): boolean {
  return bytes[at] === QUOTE && bytes[at + 1 + name.length] === QUOTE && holds(bytes, at + 1, name);
}

/**
 * Returns the position after the value of the field whose name begins there; for an array, the position
 * before it.
 */
function valueAt(bytes: Uint8Array, nameAt: Position, { name, type }: Field): Position {
  let at = skipBlanks(bytes, nameAt + name.length + 2);
  if (bytes[at] !== COLON) return OTHER;
  at = skipBlanks(bytes, at + 1);
  if (type === "data") return at;
  return type === "string" ? afterString(bytes, at) : afterNumber(bytes, at, type === "integer");
}

function afterString(bytes: Uint8Array, quote: Position): Position {
  if (bytes[quote] !== QUOTE) return OTHER;
  for (let at = quote + 1; ; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) return at + 1;
    // JSON forbids unescaped control characters.
    if (byte === undefined || byte === BACKSLASH || byte < 0x20) return OTHER;
  }
}

/** An integer with more digits may not be a safe one. */
const DIGITS_MAX = 15;

function afterNumber(bytes: Uint8Array, begin: Position, isInteger: boolean): Position {
  const first = bytes[begin] === MINUS ? begin + 1 : begin;
  let at = afterDigits(bytes, first);
  if (at === first || (bytes[first] === ZERO && at > first + 1)) return OTHER;
  if (isInteger) return at - first <= DIGITS_MAX && !continues(bytes[at]) ? at : OTHER;
  if (bytes[at] === DOT) {
    const fraction = at + 1;
    at = afterDigits(bytes, fraction);
    if (at === fraction) return OTHER;
  }
  // An exponent is rare and left to the other reader.
  return continues(bytes[at]) ? OTHER : at;
}

function afterDigits(bytes: Uint8Array, begin: Position): Position {
  let at = begin;
  for (let byte = bytes[at]; byte !== undefined && byte >= ZERO && byte <= NINE; byte = bytes[at]) at += 1;
  return at;
}

/** Whether a number continues with a fraction or an exponent. */
function continues(byte: number | undefined): boolean {
  return byte === DOT || byte === 0x45 || byte === 0x65;
}

/** The position of the quote that ends the string whose first quote is there. */
export function endOfString(bytes: Uint8Array, quote: number): number {
  let at = quote + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

export function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let byte = bytes[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = bytes[at])
    at += 1;
  return at;
}
