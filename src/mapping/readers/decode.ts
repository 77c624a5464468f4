/**
 * Decodes the bytes of a file, in whatever encoding, to UTF-8 without a byte order mark. No byte is replaced
 * silently.
 */
import { isUtf8 } from "node:buffer";
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import type Iconv from "iconv-lite";
import type { Cut } from "./cut.ts";
import { refuseOtherFormats, refusePage } from "./magic.ts";
import { UnreadableError } from "./row-error.ts";

const require = createRequire(import.meta.url);
let loaded: Encodings | undefined;
const NUL_HINT = "Text contains no NUL. Was the file cut off or padded when the program that wrote it stopped?";
const AROUND_BYTES = 20;
const CHUNK_BYTES = 64 * 1024;
/** Bytes within which byte order marks and the signatures of other formats are. */
const HEAD_BYTES = 8;
const NOTHING = Buffer.alloc(0);

/** The source that readers read. */
export interface Input {
  readonly path: string;
  readonly signal: AbortSignal;
  /** Size in bytes, when it is known. */
  readonly size?: number | undefined;
  /** Content of a small file, once it was read: several readers share it, so no reader may change it. */
  small?: Buffer | undefined;
  /** The mapper reads HTML pages. */
  readonly mayBePage?: boolean | undefined;
  /** Only in regular files. */
  readonly cut?: Cut | undefined;
}

/** Reads a small file at once, since a stream costs more than it reads. Null for a larger file. */
function smallContent(input: Input): Buffer | null {
  if (input.small !== undefined) return input.small;
  if (!isSmall(input)) return null;
  input.small = readFileSync(input.path);
  return input.small;
}

function isSmall({ path, size = 0, cut }: Input): boolean {
  if (cut !== undefined) return false;
  // A pipe or another source that is not a regular file has no size before it is read.
  if (size > 0) return size <= CHUNK_BYTES;
  const status = statSync(path);
  return status.isFile() && status.size <= CHUNK_BYTES;
}

/** The bytes as they are, for a caller that may change them. */
export async function* rawChunks(input: Input): AsyncGenerator<Buffer> {
  const small = smallContent(input);
  if (small === null) yield* largeChunks(input);
  else if (small.length > 0) yield Buffer.from(small);
}

/** Chunks that are read between two turns of the event loop, in which timers run and signals arrive. */
const CHUNKS_A_TURN = 16;

/** Synchronous calls: a stream costs more than the disk. A new buffer for each chunk, which the caller may keep. */
async function* largeChunks({ path, signal, cut }: Input): AsyncGenerator<Buffer> {
  const file = openSync(path, "r");
  let at = 0;
  try {
    for (let nth = 1; ; nth += 1) {
      if (nth % CHUNKS_A_TURN === 0) await nextTurn();
      signal.throwIfAborted();
      const room = cut !== undefined && at < cut.at ? Math.min(CHUNK_BYTES, cut.at - at) : CHUNK_BYTES;
      const chunk = Buffer.allocUnsafeSlow(room);
      const read = readSync(file, chunk, 0, room, cut === undefined ? null : at);
      if (read === 0) return;
      at += read;
      if (at === cut?.at) cut.isNext = true;
      yield read === room ? chunk : chunk.subarray(0, read);
      if (at !== cut?.at) continue;
      const next = cut.pass();
      if (next === null) return;
      at = next;
    }
  } finally {
    closeSync(file);
  }
}

/** A query for any encoding outside this list would load the tables of all encodings. */
function isKnown(encoding: string): boolean {
  return encoding === "utf-8" || encodings().encodingExists(encoding);
}

/** UTF-8 in chunks that end between characters. A byte order mark wins over the declared encoding. */
export function utf8Chunks(input: Input, declared = "utf-8"): Iterable<Buffer> | AsyncIterable<Buffer> {
  if (!isKnown(declared))
    throw new UnreadableError(`the encoding "${declared}" is unknown`, {
      hint: "Known encodings are for example utf-8, utf-16le, windows-1252, iso-8859-1, iso-8859-15, macroman.",
    });
  const small = smallContent(input);
  return small === null ? largeAsUtf8(input, declared) : smallAsUtf8(small, declared, input.mayBePage);
}

/**
 * Returns a small file at once; null for a larger file, and for one with a fault, which `utf8Chunks` reports.
 */
export function smallUtf8(input: Input, declared = "utf-8"): Buffer | null {
  const small = isKnown(declared) ? smallContent(input) : null;
  if (small === null) return null;
  try {
    const [bytes = NOTHING, ...more] = smallAsUtf8(small, declared, input.mayBePage);
    return more.length === 0 ? bytes : null;
  } catch {
    // `utf8Chunks` meets the same fault and reports it.
    return null;
  }
}

function* smallAsUtf8(bytes: Buffer, declared: string, mayBePage = false): Generator<Buffer> {
  try {
    const [decode, rest] = startDecoding(bytes, declared, mayBePage);
    // In two steps, as for a large file: the valid text is returned before a fault at its end is raised.
    const ready = decode(rest, false);
    if (ready.length > 0) yield ready;
    const last = decode(NOTHING, true);
    if (last.length > 0) yield last;
  } catch (thrown) {
    throw thrown instanceof ByteFault ? (new Locator(thrown).pass(bytes) ?? thrown) : thrown;
  }
}

async function* largeAsUtf8(input: Input, declared: string): AsyncGenerator<Buffer> {
  try {
    yield* decoded(input, declared);
  } catch (thrown) {
    throw thrown instanceof ByteFault ? await locate(input, thrown) : thrown;
  }
}

async function* decoded(input: Input, declared: string): AsyncGenerator<Buffer> {
  let decode: Decode | undefined;
  let held: Buffer = NOTHING;
  for await (const chunk of largeChunks(input)) {
    let bytes = chunk;
    if (decode === undefined) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      if (held.length < HEAD_BYTES) continue;
      [decode, bytes] = startDecoding(held, declared, input.mayBePage);
    }
    const ready = decode(bytes, false);
    if (ready.length > 0) yield ready;
  }
  let rest: Buffer = NOTHING;
  if (decode === undefined) [decode, rest] = startDecoding(held, declared, input.mayBePage);
  const last = decode(rest, true);
  if (last.length > 0) yield last;
}

/** Returns the decoder that the first bytes call for, and the bytes after the byte order mark. */
function startDecoding(first: Buffer, declared: string, mayBePage = false): [Decode, Buffer] {
  refuseOtherFormats(first);
  if (!mayBePage) refusePage(first);
  if (isMarked(first)) return [checkUtf8(3), first.subarray(3)];
  if (first[0] === 0xff && first[1] === 0xfe) return [decodeUtf16(false), first.subarray(2)];
  if (first[0] === 0xfe && first[1] === 0xff) return [decodeUtf16(true), first.subarray(2)];
  const name = declared.toLowerCase().replace(/[^a-z0-9]/g, "");
  if (name === "utf8") return [checkUtf8(0), first];
  if (name === "utf16be") return [decodeUtf16(true), first];
  if (/^(?:utf16(?:le)?|ucs2)$/.test(name)) return [decodeUtf16(false), first];
  return [convert(declared), first];
}

/** Encodings with tables in a library; bytes that an encoding does not define are refused. */
function convert(encoding: string): Decode {
  const decoder = encodings().getDecoder(encoding);
  const position = new Position();
  return (chunk, end) => {
    const text = decoder.write(chunk) + (end ? (decoder.end() ?? "") : "");
    const bad = text.indexOf("\ufffd");
    if (bad !== -1) {
      position.pass(text.slice(0, bad));
      const byte = text.length === chunk.length ? ` (0x${chunk.subarray(bad, bad + 1).toString("hex")})` : "";
      throw position.fault(
        `bytes that ${encoding} does not define${byte}`,
        "Declare the encoding that the file was written in, for example utf-8 or windows-1252.",
      );
    }
    return checkedText(text, position);
  };
}

/** UTF-16 (RFC 2781). Pairs and units that are split between two chunks are joined. */
function decodeUtf16(isBigEndian: boolean): Decode {
  const position = new Position();
  let carried: Buffer = Buffer.alloc(0);
  return (chunk, end) => {
    const bytes = carried.length === 0 ? chunk : Buffer.concat([carried, chunk]);
    let whole = bytes.length - (bytes.length % 2);
    const lastUnit = whole === 0 ? 0 : isBigEndian ? bytes.readUInt16BE(whole - 2) : bytes.readUInt16LE(whole - 2);
    if (!end && lastUnit >= 0xd800 && lastUnit <= 0xdbff) whole -= 2;
    // `swap16` works in place, but the chunk belongs to the caller.
    const units = isBigEndian ? Buffer.from(bytes.subarray(0, whole)).swap16() : bytes.subarray(0, whole);
    carried = bytes.subarray(whole);
    const text = units.toString("utf16le");
    if (!text.isWellFormed()) {
      position.pass(text.slice(0, loneSurrogateAt(text)));
      throw position.fault(
        "half of a surrogate pair stands alone, which is not UTF-16",
        "Is the file complete, and written in UTF-16? The program that writes it must write whole characters.",
      );
    }
    const decoded = checkedText(text, position);
    if (end && carried.length > 0)
      throw position.fault(
        "the file ends in the middle of a character of UTF-16",
        "Is the file complete? It may have been cut off, or read while it was being written.",
      );
    return decoded;
  };
}

function loneSurrogateAt(text: string): number {
  return text.search(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
}

function checkedText(text: string, position: Position): Buffer {
  const nul = text.indexOf("\0");
  if (nul !== -1) {
    position.pass(text.slice(0, nul));
    throw position.fault("a NUL character", NUL_HINT);
  }
  position.pass(text);
  return Buffer.from(text);
}

async function locate(input: Input, fault: ByteFault): Promise<UnreadableError> {
  const locator = new Locator(fault);
  for await (const chunk of largeChunks({ ...input, cut: undefined })) {
    const located = locator.pass(chunk);
    if (located !== undefined) return located;
  }
  return locator.here;
}

// The check of bytes that are declared as UTF-8, with the place and a hint for each fault.

/** Takes the next bytes, and returns the complete characters as UTF-8. */
type Decode = (chunk: Buffer, end: boolean) => Buffer;

function nulHint(bytes: Buffer, at: number, offset: number): string {
  const isWide = (bytes[at + 1] ?? 0) !== 0 && bytes[at + 2] === 0;
  if (!isWide) return NUL_HINT;
  const encoding = offset % 2 === 1 ? "utf-16le" : "utf-16be";
  const setting = `for most mappers by the setting \`encoding: ${encoding}\``;
  return `The file seems to be UTF-16 without a byte order mark: declare its encoding, ${setting}.`;
}

/** A byte that is invalid in UTF-8. Its line is counted only on such a fault, by reading the file again. */
class ByteFault extends Error {
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
class Locator {
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

function isMarked(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/**
 * Passes valid UTF-8 through, and refuses other bytes: a replacement character would change identifiers
 * silently.
 */
function checkUtf8(start: number): Decode {
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

/** The text of the line around a byte. */
function around(bytes: Buffer, at: number): string {
  const before = encodings().decode(bytes.subarray(Math.max(0, at - AROUND_BYTES), at), "windows-1252");
  const after = encodings().decode(bytes.subarray(at, at + AROUND_BYTES), "windows-1252");
  return `${before.replace(/^.*[\r\n]/s, "")}${after.replace(/[\r\n].*$/s, "")}`;
}

// The place of a fault in the text of a file.

/** Line and column that the decoder has reached. */
class Position {
  line = 1;
  /** Characters of the line so far. */
  characters = 0;

  pass(text: string): void {
    let start = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", start)) {
      this.line += 1;
      this.characters = 0;
      start = at + 1;
    }
    this.characters += text.length - start;
  }

  passBytes(bytes: Buffer): void {
    let start = 0;
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, start)) {
      this.line += 1;
      this.characters = 0;
      start = at + 1;
    }
    // In UTF-8 each character has exactly one byte that is not a continuation byte.
    for (let at = start; at < bytes.length; at += 1) if (((bytes[at] ?? 0) & 0xc0) !== 0x80) this.characters += 1;
  }

  fault(what: string, hint: string): UnreadableError {
    const column = this.characters + 1;
    return new UnreadableError(`line ${this.line}, character ${column}: ${what}`, {
      row: this.line,
      column: `character ${column}`,
      hint,
    });
  }
}

type Encodings = Pick<typeof Iconv, "encodingExists" | "getDecoder" | "decode">;

/** Encodings beside UTF-8, by iconv-lite, which is loaded for the first file that names one: most never do. */
export function encodings(): Encodings {
  loaded ??= require("iconv-lite") as Encodings;
  return loaded;
}
