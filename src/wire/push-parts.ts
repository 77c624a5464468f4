/**
 * The elements of a large push body, without objects for all readings at one time: the bytes are cut between
 * elements, and in long elements between readings, and each piece is parsed alone. `JSON.parse` checks the
 * inside of a piece; here only strings and brackets count.
 */
import { randomUUID } from "node:crypto";
import { jsonFault } from "./json-fault.ts";
import type { PushElement } from "./push.ts";
import { PushBodyFault, readElement, readPushBody, type UnknownNames } from "./push-body.ts";
import { endOfString, skipBlanks } from "./push-scan.ts";

/** Bodies up to this size are parsed in one go. */
const WHOLE_BYTES = 2 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;

export interface PartSizes {
  readonly whole: number;
  readonly piece: number;
}

/**
 * As `readPushBody`; a long element comes as several, each with a part of its readings. Throws a
 * `PushBodyFault`, maybe after some parts: a caller that must know that the body is valid reads it to the end
 * first.
 */
export function* readPushParts(
  bytes: Uint8Array,
  { whole, piece }: PartSizes = { whole: WHOLE_BYTES, piece: PIECE_BYTES },
  unknown?: UnknownNames,
): Generator<PushElement> {
  if (bytes.byteLength <= whole) {
    yield* readPushBody(bytes, unknown);
    return;
  }
  let index = 0;
  for (const part of cut(bytes, piece))
    if (part.kind === "elements")
      for (const element of parse(bytes, part.from, part.to, "[", "]") as unknown[]) {
        yield readElement(element, index, 0, unknown);
        index += 1;
      }
    else {
      yield* longElement(bytes, part, index, unknown);
      index += 1;
    }
}

/**
 * Elements between two commas, or one long element with the places where its array of readings may be cut.
 */
type Part =
  | { readonly kind: "elements"; readonly from: number; readonly to: number }
  | {
      readonly kind: "long";
      readonly from: number;
      readonly to: number;
      /** Position after the opening bracket of the array. */
      readonly arrayFrom: number;
      /** Position of its closing bracket. */
      readonly arrayTo: number;
      readonly commas: readonly number[];
    };

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Depths: 1 in the body's array, 2 in an element, 3 in its array of readings. */
function* cut(bytes: Uint8Array, piece: number): Generator<Part> {
  const begin = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const first = skipBlanks(bytes, begin);
  if (bytes[first] !== OPEN_ARRAY) throw misshapen(bytes, begin);
  let depth = 1;
  let from = first + 1;
  let element = from;
  let array = { from: -1, to: -1, last: -1, commas: [] as number[] };
  let next = array;
  for (let at = first + 1; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1;
      // An object there (tags) is not cut.
      const last = byte === OPEN_ARRAY ? at : Number.POSITIVE_INFINITY;
      if (depth === 3) next = { from: at + 1, to: -1, last, commas: [] };
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      depth -= 1;
      if (depth === 2 && next.commas.length > array.commas.length) array = { ...next, to: at };
    } else if (byte === COMMA && depth === 3 && at - next.last > piece) {
      next.commas.push(at);
      next.last = at;
    }
    const ends = depth === 0;
    if (!ends && !(byte === COMMA && depth === 1)) continue;
    if (array.commas.length > 0) {
      // Excludes the comma before it, which must follow an element.
      if (element > from && skipBlanks(bytes, from) >= element - 1)
        throw broken(element - 1, "an element is missing before a comma");
      if (element > from) yield { kind: "elements", from, to: element - 1 };
      yield {
        kind: "long",
        from: element,
        to: at,
        arrayFrom: array.from,
        arrayTo: array.to,
        commas: array.commas,
      };
      from = at + 1;
    } else if (ends || at - from > piece) {
      // `[]` alone is empty; after a comma an element must follow.
      if (ends && from > first + 1 && skipBlanks(bytes, from) >= at)
        throw broken(at, "an element is missing after a comma");
      yield { kind: "elements", from, to: at };
      from = at + 1;
    }
    array = { from: -1, to: -1, last: -1, commas: [] };
    next = array;
    element = at + 1;
    if (!ends) continue;
    if (byte !== CLOSE_ARRAY || skipBlanks(bytes, at + 1) < bytes.length)
      throw broken(at, "something follows the array");
    return;
  }
  throw broken(bytes.length, "it ends too early");
}

/** Replaces the readings while the rest of their element is parsed. */
const MARK = randomUUID();

function* longElement(
  bytes: Uint8Array,
  { from, to, arrayFrom, arrayTo, commas }: Extract<Part, { kind: "long" }>,
  index: number,
  unknown: UnknownNames | undefined,
): Generator<PushElement> {
  const head = `${decode(bytes, from, arrayFrom)}${JSON.stringify(MARK)}${decode(bytes, arrayTo, to)}`;
  const element = parseText(head, from) as Record<string, unknown>;
  const names = Object.keys(element).filter((name) => name.toLowerCase() === "data");
  const [name = ""] = names;
  const marked = element[name];
  if (names.length !== 1 || !Array.isArray(marked) || marked.length !== 1 || marked[0] !== MARK) {
    // The long array is not an array of readings: rare enough to be parsed as one piece.
    yield readElement(parse(bytes, from, to, "", ""), index, 0, unknown);
    return;
  }
  let reading = 0;
  const ends = [...commas, arrayTo];
  for (const [piece, end] of ends.entries()) {
    const begin = piece === 0 ? arrayFrom : (ends[piece - 1] ?? 0) + 1;
    if (skipBlanks(bytes, begin) >= end) throw broken(end, "a reading is missing beside a comma");
    const data = parse(bytes, begin, end, "[", "]") as unknown[];
    yield readElement({ ...element, [name]: data }, index, reading, unknown);
    reading += data.length;
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array, from: number, to: number): string {
  try {
    return decoder.decode(bytes.subarray(from, to));
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new PushBodyFault(null, "the body is not valid JSON: it is not UTF-8");
  }
}

function parse(bytes: Uint8Array, from: number, to: number, before: string, after: string): unknown {
  return parseText(before + decode(bytes, from, to) + after, from);
}

function parseText(text: string, from: number): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw broken(from, jsonFault(text)?.words ?? "it cannot be read");
  }
}

function broken(at: number, why: string): PushBodyFault {
  return new PushBodyFault(null, `the body is not valid JSON: after byte ${at}: ${why}`);
}

/** The body is not an array: an error of its own when it is valid JSON. */
function misshapen(bytes: Uint8Array, begin: number): PushBodyFault {
  const isOther = bytes[skipBlanks(bytes, begin)] === OPEN_OBJECT;
  return isOther
    ? new PushBodyFault("", "must be an array of elements, and not an object")
    : broken(begin, "it is not an array of elements");
}
