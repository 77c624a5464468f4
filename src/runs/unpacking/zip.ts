/**
 * Entries of a ZIP archive (PKWARE APPNOTE 6.3.x, with ZIP64) by its central directory. What an archive says of itself is never trusted:
 * sizes and checksums are compared while the bytes come.
 */
import { isUtf8 } from "node:buffer";
import { pipeline, type Readable, Transform } from "node:stream";
import { crc32 } from "node:zlib";
import { type Entry, getFileNameLowLevel, openPromise, validateFileName } from "yauzl";
import type { UnpackLimits } from "../../model.ts";
import { damaged, misnamed } from "./refusals.ts";

export interface ZipEntry {
  /** As the archive has it, with `/` between folders; not judged yet. */
  readonly name: string;
  readonly raw: Entry;
}

const UNIX = 3;
const FILE_TYPE_MASK = 0o170000;
const SYMBOLIC_LINK = 0o120000;
const NAME_CHARACTERS_MAX = 1_000;

/** Files alone, without folders. Throws what `refusals.ts` makes. */
export async function* zipEntries(path: string, names: UnpackLimits["names"]): AsyncGenerator<ZipEntry> {
  const zip = await openPromise(path, { autoClose: false, decodeStrings: false });
  try {
    for await (const raw of zip.eachEntry()) {
      const name = nameIn(raw, names);
      if (!name.endsWith("/")) yield { name, raw };
    }
  } finally {
    zip.close();
  }
}

const UTF8_FLAG = 0x0800;

/**
 * The archive's own word counts: the field of Info-ZIP, and the flag of UTF-8 where the name is that. Without one a name is in the code page of
 * whoever packed it; what is UTF-8 by its bytes is hardly anything else (a Mac packs so). Without `names`, as in runs of earlier versions, it is
 * code page 437.
 */
function nameIn(raw: Entry, names: UnpackLimits["names"]): string {
  const { generalPurposeBitFlag: flags, fileNameRaw: bytes, extraFields } = raw;
  const told = getFileNameLowLevel(flags, bytes, extraFields, false);
  const isByField = told !== getFileNameLowLevel(flags, bytes, [], false);
  const isByFlag = (flags & UTF8_FLAG) !== 0 && isUtf8(bytes);
  if (names === undefined || isByField || isByFlag) return told;
  if (names === "latin-1") return bytes.toString("latin1").replaceAll("\\", "/");
  return getFileNameLowLevel(isUtf8(bytes) ? UTF8_FLAG : 0, bytes, [], false);
}

/** The name as a path within the container, or a refusal: a name that leads out is the work of somebody who means harm. */
export function safeName(name: string): string {
  const fault = validateFileName(name);
  if (fault !== null) throw misnamed(`it holds an entry whose name leads out of it (${shorten(name)})`);
  const parts = name.split("/").filter((part) => part !== ".");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (parts.includes("") || /[\0-\x1f\x7f]/.test(name) || name.length > NAME_CHARACTERS_MAX)
    throw misnamed(`it holds an entry whose name is no name of a file (${shorten(name)})`);
  return parts.join("/");
}

/** Why the content of this one entry cannot be had, or null. */
export function entryRefusal({ raw }: ZipEntry): string | null {
  if (raw.isEncrypted()) return "the entry is encrypted";
  if (
    raw.versionMadeBy >>> 8 === UNIX &&
    ((raw.externalFileAttributes >>> 16) & FILE_TYPE_MASK) === SYMBOLIC_LINK
  )
    return "the entry is a symbolic link, and no file";
  return raw.canDecodeFileData()
    ? null
    : `the entry is compressed by a method (${raw.compressionMethod}) that is not known here`;
}

/** When the entry was last changed, as far as the archive tells; a time without a zone is taken for UTC. In milliseconds since 1970. */
export function modifiedMs({ raw }: ZipEntry): number {
  return raw.getLastModDate({ timezone: "UTC" }).getTime() || 0;
}

/** The content of one entry, verified while it is read. */
export async function readZipEntry(path: string, entry: ZipEntry): Promise<Readable> {
  const zip = await openPromise(path, { autoClose: false, decodeStrings: false });
  try {
    const stream = await zip.openReadStreamPromise(entry.raw);
    // The fault of a broken pipe reaches whoever reads the end of it.
    return pipeline(stream, checksum(entry), () => undefined);
  } finally {
    zip.close(); // In earnest when the stream has ended.
  }
}

function checksum({ name, raw }: ZipEntry): Transform {
  let sum = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sum = crc32(chunk, sum);
      done(null, chunk);
    },
    flush(done) {
      done(sum === raw.crc32 >>> 0 ? null : damaged(`the checksum of ${shorten(name)} does not agree`));
    },
  });
}

function shorten(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}
