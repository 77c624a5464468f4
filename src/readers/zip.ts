/**
 * Entries of a ZIP archive by its central directory (PKWARE APPNOTE 4.3), so that they can be read in any order, without temporary files.
 * Stored and deflated entries; no encryption, no archives of 4 GB and more.
 */
import { open } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { crc32, createInflateRaw } from "node:zlib";
import type { Input } from "./decode.ts";
import { DIRECTORY_BYTES_MAX, UNPACK_RATIO_MAX, UNPACKED_FREE_BYTES } from "./limits.ts";
import { knownFormat } from "./magic.ts";
import { UnreadableError } from "./row-error.ts";

interface Entry {
  readonly name: string;
  readonly method: number;
  /** Of the unpacked bytes. */
  readonly crc: number;
  /** Bytes as stored. */
  readonly compressed: number;
  /** Of the local header, in bytes from the start of the file. */
  readonly offset: number;
}

const END_SIGNATURE = 0x06054b50;
const END_BYTES = 22;
/** The end record is followed by a comment of at most this. */
const COMMENT_BYTES_MAX = 65_535;
const CENTRAL_SIGNATURE = 0x02014b50;
const CENTRAL_BYTES = 46;
const LOCAL_SIGNATURE = 0x04034b50;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;
const CHUNK_BYTES = 64 * 1024;

/** What is read of a file, as of a `FileHandle`. */
interface Bytes {
  stat(): Promise<{ readonly size: number }>;
  read(
    into: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/** Of a file that was read as a whole. */
function heldBytes(bytes: Buffer): Bytes {
  return {
    stat: async () => ({ size: bytes.length }),
    read: async (into, offset, length, position) => ({
      bytesRead: bytes.copy(into, offset, position, position + length),
    }),
    close: async () => undefined,
  };
}

export class ZipArchive {
  readonly #handle: Bytes;
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(handle: Bytes, entries: ReadonlyMap<string, Entry>) {
    this.#handle = handle;
    this.#entries = entries;
  }

  /** Throws an `UnreadableError` for what is no archive. */
  static async open({ path, small }: Pick<Input, "path" | "small">): Promise<ZipArchive> {
    const handle = small === undefined ? await open(path, "r") : heldBytes(small);
    try {
      return new ZipArchive(handle, await readDirectory(handle));
    } catch (thrown) {
      await handle.close();
      throw thrown;
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /**
   * Text of an entry in UTF-8, in chunks that end between characters; nothing when there is no such entry. Refuses what unpacks to more
   * than `bytesMax`, or to far more than is packed, and what is damaged.
   */
  async *text(name: string, bytesMax: number): AsyncGenerator<string> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let unpacked = 0;
    let crc = 0;
    const decode = (chunk?: Buffer): string => {
      try {
        return decoder.decode(chunk, { stream: chunk !== undefined });
      } catch {
        throw damaged(`the entry ${name} is not UTF-8`);
      }
    };
    for await (const chunk of (await this.#bytes(entry)) as AsyncIterable<Buffer>) {
      unpacked += chunk.length;
      crc = crc32(chunk, crc);
      limitUnpacked(entry, unpacked, bytesMax);
      const text = decode(chunk);
      if (text !== "") yield text;
    }
    const rest = decode();
    if (rest !== "") yield rest;
    if (crc !== entry.crc) throw damaged(`the entry ${name} is not what its check sum says`);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #bytes(entry: Entry): Promise<Readable> {
    const local = await readExactly(this.#handle, entry.offset, LOCAL_BYTES);
    if (local.readUInt32LE(0) !== LOCAL_SIGNATURE)
      throw damaged(`the entry ${entry.name} is not where it should be`);
    const start = entry.offset + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
    const raw = Readable.from(slices(this.#handle, start, entry.compressed), { objectMode: false });
    if (entry.method === STORED) return raw;
    if (entry.method !== DEFLATED)
      throw damaged(`the entry ${entry.name} is compressed or encrypted in an unknown way`);
    // The fault of a broken pipe reaches whoever reads the end of it.
    return pipeline(raw, createInflateRaw({ chunkSize: CHUNK_BYTES }), () => undefined);
  }
}

function limitUnpacked({ name, compressed }: Entry, unpacked: number, bytesMax: number): void {
  if (unpacked > bytesMax) throw damaged(`the entry ${name} unpacks to more than ${bytesMax} bytes`);
  if (unpacked > UNPACKED_FREE_BYTES && unpacked > compressed * UNPACK_RATIO_MAX)
    throw damaged(
      `the entry ${name} unpacks to more than ${UNPACK_RATIO_MAX} times its size, as no sheet does`,
    );
}

async function* slices(handle: Bytes, start: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length; ) {
    const slice = await readExactly(handle, start + done, Math.min(CHUNK_BYTES, length - done));
    done += slice.length;
    yield slice;
  }
}

async function readDirectory(handle: Bytes): Promise<Map<string, Entry>> {
  const { size } = await handle.stat();
  const tailBytes = Math.min(size, END_BYTES + COMMENT_BYTES_MAX);
  const tail = await readExactly(handle, size - tailBytes, tailBytes);
  let end = tail.length - END_BYTES;
  while (end >= 0 && tail.readUInt32LE(end) !== END_SIGNATURE) end -= 1;
  if (end < 0) throw await noArchive(handle, size);
  const count = tail.readUInt16LE(end + 10);
  const bytes = tail.readUInt32LE(end + 12);
  const offset = tail.readUInt32LE(end + 16);
  if (offset === 0xffff_ffff || offset + bytes > size) throw damaged("its directory is not within the file");
  if (bytes > DIRECTORY_BYTES_MAX) throw damaged(`its directory is larger than ${DIRECTORY_BYTES_MAX} bytes`);
  return parseDirectory(await readExactly(handle, offset, bytes), count);
}

/** Says what the file is instead. */
async function noArchive(handle: Bytes, size: number): Promise<UnreadableError> {
  if (size === 0) return damaged("it is empty");
  const first = await readExactly(handle, 0, Math.min(size, 8));
  const { what = "no archive, or its end is missing" } = knownFormat(first) ?? {};
  return damaged(first[0] === 0x50 && first[1] === 0x4b ? "its end is missing" : `it is ${what}`);
}

function parseDirectory(directory: Buffer, count: number): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  let at = 0;
  for (let nth = 0; nth < count; nth += 1) {
    if (at + CENTRAL_BYTES > directory.length || directory.readUInt32LE(at) !== CENTRAL_SIGNATURE)
      throw damaged("its directory is broken");
    const nameBytes = directory.readUInt16LE(at + 28);
    const next =
      at + CENTRAL_BYTES + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
    // Some writers separate folders by a backslash or begin with one.
    const name = directory
      .toString("utf8", at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameBytes)
      .replaceAll("\\", "/")
      .replace(/^\//, "");
    entries.set(name, {
      name,
      method: directory.readUInt16LE(at + 10),
      crc: directory.readUInt32LE(at + 16),
      compressed: directory.readUInt32LE(at + 20),
      offset: directory.readUInt32LE(at + 42),
    });
    at = next;
  }
  return entries;
}

async function readExactly(handle: Bytes, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await handle.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw damaged("it ends too early");
    done += bytesRead;
  }
  return buffer;
}

function damaged(why: string): UnreadableError {
  return new UnreadableError(`the file cannot be read as a workbook (.xlsx): ${why}`, {
    hint: "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.",
  });
}
