/** The bytes of a file as UTF-8 without a byte order mark, whatever it was written in. Nothing is replaced in silence. */
import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import iconv from "iconv-lite";
import { UnreadableError } from "../row-error.ts";

const CHUNK_BYTES = 256 * 1024;

/** What readers are given. */
export interface Input {
  readonly path: string;
  readonly signal: AbortSignal;
}

/** The bytes as they are. */
export async function* rawChunks({ path, signal }: Input): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    signal.throwIfAborted();
    yield chunk as Buffer;
  }
}

/** UTF-8 in chunks that end between characters. A byte order mark wins over the declared encoding. */
export async function* utf8Chunks(input: Input, declared = "utf-8"): AsyncGenerator<Buffer> {
  if (!iconv.encodingExists(declared))
    throw new UnreadableError(`the encoding "${declared}" is not known`, {
      hint: "Known are for example utf-8, utf-16le, windows-1252, iso-8859-1, iso-8859-15, macroman.",
    });
  let decode: ((chunk: Buffer, end: boolean) => Buffer) | undefined;
  let held: Buffer = Buffer.alloc(0);
  for await (const chunk of rawChunks(input)) {
    let bytes = chunk;
    if (decode === undefined) {
      held = Buffer.concat([held, chunk]);
      if (held.length < 3) continue;
      [decode, bytes] = startDecoding(held, declared);
    }
    const decoded = decode(bytes, false);
    if (decoded.length > 0) yield decoded;
  }
  let rest: Buffer = Buffer.alloc(0);
  if (decode === undefined) [decode, rest] = startDecoding(held, declared);
  const last = decode(rest, true);
  if (last.length > 0) yield last;
}

/** The decoder that the first bytes call for, and the bytes after the mark. */
function startDecoding(first: Buffer, declared: string): [(chunk: Buffer, end: boolean) => Buffer, Buffer] {
  if (first[0] === 0xef && first[1] === 0xbb && first[2] === 0xbf) return [checkUtf8(), first.subarray(3)];
  if (first[0] === 0xff && first[1] === 0xfe) return [convert("utf-16le"), first.subarray(2)];
  if (first[0] === 0xfe && first[1] === 0xff) return [convert("utf-16be"), first.subarray(2)];
  return [/^utf-?8$/i.test(declared) ? checkUtf8() : convert(declared), first];
}

function convert(encoding: string): (chunk: Buffer, end: boolean) => Buffer {
  const decoder = iconv.getDecoder(encoding);
  return (chunk, end) => Buffer.from(decoder.write(chunk) + (end ? (decoder.end() ?? "") : ""));
}

/** Passes UTF-8 on as it is, and refuses what is none: a replacement character would change identifiers in silence. */
function checkUtf8(): (chunk: Buffer, end: boolean) => Buffer {
  let carried: Buffer = Buffer.alloc(0);
  let line = 1;
  return (chunk, end) => {
    const bytes = carried.length === 0 ? chunk : Buffer.concat([carried, chunk]);
    const whole = end ? bytes.length : wholeLength(bytes);
    const ready = bytes.subarray(0, whole);
    carried = bytes.subarray(whole);
    if (!isUtf8(ready)) throw notUtf8(ready, line);
    if (!end) line += countLines(ready, ready.length);
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

function notUtf8(bytes: Buffer, firstLine: number): UnreadableError {
  // The first byte that a strict reading stops at, found by halving.
  let good = 0;
  for (let bad = bytes.length; bad - good > 1; ) {
    const middle = good + Math.floor((bad - good) / 2);
    if (isUtf8(bytes.subarray(0, wholeLength(bytes.subarray(0, middle))))) good = middle;
    else bad = middle;
  }
  const at = wholeLength(bytes.subarray(0, good));
  const row = firstLine + countLines(bytes, at);
  return new UnreadableError(
    `line ${row} holds bytes that are not UTF-8 (0x${bytes.subarray(at, at + 1).toString("hex")})`,
    { row, hint: "Declare the encoding of the file, for example windows-1252." },
  );
}

function countLines(bytes: Buffer, end: number): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at !== -1 && at < end; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}
