/** The check of bytes that are declared as UTF-8, with the place and a hint for each fault. */
import { isUtf8 } from "node:buffer";
import { encodings } from "./encodings.ts";
import { Position } from "./position.ts";
import type { UnreadableError } from "./row-error.ts";

/** Takes the next bytes, and returns the complete characters as UTF-8. */
export type Decode = (chunk: Buffer, end: boolean) => Buffer;

export const NUL_HINT = "Text contains no NUL. Was the file cut off or padded when the program that wrote it stopped?";

function nulHint(bytes: Buffer, at: number, offset: number): string {
  const isWide = (bytes[at + 1] ?? 0) !== 0 && bytes[at + 2] === 0;
  if (!isWide) return NUL_HINT;
  const encoding = offset % 2 === 1 ? "utf-16le" : "utf-16be";
  const setting = `for most mappers by the setting \`encoding: ${encoding}\``;
  return `The file seems to be UTF-16 without a byte order mark: declare its encoding, ${setting}.`;
}

/** A byte that is invalid in UTF-8. Its line is counted only on such a fault, by reading the file again. */
export class ByteFault extends Error {
  /** From the start of the file. */
  readonly offset: number;
  readonly hint: string;

  constructor(what: string, offset: number, hint: string) {
    super(what);
    this.offset = offset;
    this.hint = hint;
  }
}

/** Counts lines up to a fault. */
export class Locator {
  readonly #fault: ByteFault;
  readonly #position = new Position();
  #passed = 0;

  constructor(fault: ByteFault) {
    this.#fault = fault;
  }

  /** Returns the fault with its place, once the bytes reach it. */
  pass(chunk: Buffer): UnreadableError | undefined {
    const { message, offset, hint } = this.#fault;
    const wanted = chunk.subarray(0, offset - this.#passed);
    this.#position.passBytes(this.#passed === 0 && isMarked(wanted) ? wanted.subarray(3) : wanted);
    this.#passed += wanted.length;
    return this.#passed >= offset ? this.#position.fault(message, hint) : undefined;
  }

  get here(): UnreadableError {
    return this.#position.fault(this.#fault.message, this.#fault.hint);
  }
}

export function isMarked(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/**
 * Passes valid UTF-8 through, and refuses other bytes: a replacement character would change identifiers
 * silently.
 */
export function checkUtf8(start: number): Decode {
  let offset = start;
  let carried: Buffer = Buffer.alloc(0);
  return (chunk, end) => {
    const bytes = carried.length === 0 ? chunk : Buffer.concat([carried, chunk]);
    const whole = end ? bytes.length : wholeLength(bytes);
    const ready = bytes.subarray(0, whole);
    carried = bytes.subarray(whole);
    if (!isUtf8(ready)) throw notUtf8(ready, offset);
    const nul = ready.indexOf(0);
    if (nul !== -1) throw new ByteFault("a NUL byte", offset + nul, nulHint(ready, nul, offset + nul));
    offset += ready.length;
    return ready;
  };
}

/** Length without a character that is cut off at the end. */
function wholeLength(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

function notUtf8(bytes: Buffer, offset: number): ByteFault {
  const at = badByteAt(bytes);
  return new ByteFault(
    `bytes that are not UTF-8 (0x${bytes.subarray(at, at + 1).toString("hex")})`,
    offset + at,
    `Declare the encoding of the file; in windows-1252 the place reads "${around(bytes, at)}".`,
  );
}

/** The first byte that a strict decoder refuses, found by bisection. */
function badByteAt(bytes: Buffer): number {
  let good = 0;
  for (let bad = bytes.length; bad - good > 1; ) {
    const middle = good + Math.floor((bad - good) / 2);
    if (isUtf8(bytes.subarray(0, wholeLength(bytes.subarray(0, middle))))) good = middle;
    else bad = middle;
  }
  return wholeLength(bytes.subarray(0, good));
}

const AROUND_BYTES = 20;

/** The text of the line around a byte. */
function around(bytes: Buffer, at: number): string {
  const before = encodings().decode(bytes.subarray(Math.max(0, at - AROUND_BYTES), at), "windows-1252");
  const after = encodings().decode(bytes.subarray(at, at + AROUND_BYTES), "windows-1252");
  return `${before.replace(/^.*[\r\n]/s, "")}${after.replace(/[\r\n].*$/s, "")}`;
}
