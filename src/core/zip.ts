/**
 * Entries of a ZIP archive (PKWARE APPNOTE 6.3.x, with ZIP64) by its central directory. What an archive says of itself
 * is never trusted: sizes and checksums are compared while the bytes come.
 */
import { isUtf8 } from "node:buffer";
import { pipeline, type Readable, Transform } from "node:stream";
import { crc32, createInflateRaw } from "node:zlib";
import { type Entry, fromBufferPromise, getFileNameLowLevel, openPromise, type ZipFile } from "yauzl";

export type { ZipFile } from "yauzl";

export interface ZipEntry {
  /** As the archive has it, with `/` between folders; not judged yet. */
  readonly name: string;
  readonly raw: Entry;
}

/** How names are read that the archive does not say are UTF-8. */
export type ZipNames = "utf-8" | "latin-1";

const DEFLATED = 8;
const CHUNK_BYTES = 64 * 1024;
const UNIX = 3;
const FILE_TYPE_MASK = 0o170000;
const SYMBOLIC_LINK = 0o120000;
const SHOWN_CHARACTERS = 80;

/**
 * A file by its path, or the bytes of one. Close what this opens; streams that are open keep the file open until they
 * end.
 */
export async function openZip(source: string | Buffer): Promise<ZipFile> {
  const options = { autoClose: false, decodeStrings: false };
  const zip = await (typeof source === "string" ? openPromise(source, options) : fromBufferPromise(source, options));
  // Closing a file that was only read may fail, and loses nothing.
  zip.on("error", () => undefined);
  return zip;
}

/** Files alone, without folders, in the order of the directory. Once for each `openZip`. */
export async function* zipEntries(zip: ZipFile, names: ZipNames): AsyncGenerator<ZipEntry> {
  for await (const raw of zip.eachEntry()) {
    const name = nameIn(raw, names);
    if (!name.endsWith("/")) yield { name, raw };
  }
}

const UTF8_FLAG = 0x0800;

/**
 * The declaration of the archive counts: the field of Info-ZIP, and the flag of UTF-8 where the name is valid.
 * Without one a name is in the code page of the program that packed it; a name that is valid UTF-8 is hardly
 * ever anything else (a Mac packs so).
 */
function nameIn(raw: Entry, names: ZipNames): string {
  const { generalPurposeBitFlag: flags, fileNameRaw: bytes, extraFields } = raw;
  const declared = getFileNameLowLevel(flags, bytes, extraFields, false);
  const isByField = declared !== getFileNameLowLevel(flags, bytes, [], false);
  const isByFlag = (flags & UTF8_FLAG) !== 0 && isUtf8(bytes);
  if (isByField || isByFlag) return declared;
  if (names === "latin-1") return bytes.toString("latin1").replaceAll("\\", "/");
  return getFileNameLowLevel(isUtf8(bytes) ? UTF8_FLAG : 0, bytes, [], false);
}

/** Why the content of this one entry cannot be read, or null. */
export function entryRefusal({ raw }: ZipEntry): string | null {
  if (raw.isEncrypted()) return "the entry is encrypted";
  if (raw.versionMadeBy >>> 8 === UNIX && ((raw.externalFileAttributes >>> 16) & FILE_TYPE_MASK) === SYMBOLIC_LINK)
    return "the entry is a symbolic link, and no file";
  return raw.canDecodeFileData()
    ? null
    : `the entry is compressed by a method (${raw.compressionMethod}) that is not known here`;
}

/** The content of one entry, verified while it is read. Of an entry that `entryRefusal` has nothing against. */
export async function readZipEntry(zip: ZipFile, entry: ZipEntry): Promise<Readable> {
  // Unpacked here, since larger chunks pass in less time.
  const packed = await zip.openReadStreamPromise(entry.raw, { decodeFileData: false });
  // The fault of a broken pipe reaches the reader of its end.
  const ignore = () => undefined;
  return entry.raw.compressionMethod === DEFLATED
    ? pipeline(packed, createInflateRaw({ chunkSize: CHUNK_BYTES }), verified(entry), ignore)
    : pipeline(packed, verified(entry), ignore);
}

function verified({ name, raw }: ZipEntry): Transform {
  let bytes = 0;
  let sum = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      sum = crc32(chunk, sum);
      done(bytes > raw.uncompressedSize ? sizeFault(name, raw) : null, chunk);
    },
    flush(done) {
      if (bytes !== raw.uncompressedSize) done(sizeFault(name, raw));
      else if (sum !== raw.crc32 >>> 0) done(new Error(`the checksum of ${shownName(name)} does not agree`));
      else done();
    },
  });
}

function sizeFault(name: string, { uncompressedSize }: Entry): Error {
  return new Error(`${shownName(name)} has another size than the ${uncompressedSize} bytes of the directory`);
}

/** A name of an entry for a message: quoted, and not too long. */
export function shownName(name: string): string {
  return JSON.stringify(name.length > SHOWN_CHARACTERS ? `${name.slice(0, SHOWN_CHARACTERS)}…` : name);
}
