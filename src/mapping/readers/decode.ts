/**
 * Decodes the bytes of a file, in whatever encoding, to UTF-8 without a byte order mark. No byte is replaced
 * silently.
 */
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Cut } from "./cut.ts";
import { encodings } from "./encodings.ts";
import { refuseOtherFormats, refusePage } from "./magic.ts";
import { Position } from "./position.ts";
import { UnreadableError } from "./row-error.ts";
import { ByteFault, checkUtf8, type Decode, isMarked, Locator, NUL_HINT } from "./utf8-check.ts";

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
