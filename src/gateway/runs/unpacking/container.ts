/** Reads a container on the gateway's own disk: the list of its entries, and their bytes. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { posix } from "node:path";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { validateFileName } from "yauzl";
import { HeadgateError, RejectedError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { gzipEntryName, isZipName } from "#core/file-names.ts";
import { entryRefusal, openZip, readZipEntry, shownName, type ZipEntry, type ZipFile, zipEntries } from "#core/zip.ts";
import type { UnpackLimits } from "../../model.ts";

interface PackedEntry {
  /** The path within the container. */
  readonly path: string;
  /** Unpacked bytes; as the container states them for an entry that cannot be unpacked. */
  readonly size: number;
}

export interface Contents {
  /**
   * Sorted by the times in the container, oldest first; entries of equal time as the container lists them.
   * They are delivered in this order.
   */
  readonly entries: readonly PackedEntry[];
  /** Entries that `ignore` leaves out. */
  readonly ignored: number;
}

/** Zips by the paths of their entries; a gzip has one entry and needs no directory. */
export type Directory = ReadonlyMap<string, ZipEntry>;

const OPERATION = "unpack container";
const NAME_CHARACTERS_MAX = 1_000;

/** Containers that unpack to less are never bombs, however well they were packed. */
const HARMLESS_BYTES = 4_000_000;
const DOCUMENT_MARK = "[Content_Types].xml";

/**
 * Unpacks everything once and drops the bytes, so that an entry that is damaged or beyond a limit is known
 * before any entry is claimed. `fileName` is the container's own. Throws `RejectedError` for a container that
 * must not or cannot be unpacked.
 */
export async function listContents(
  path: string,
  fileName: string,
  limits: UnpackLimits,
  signal: AbortSignal,
): Promise<Contents> {
  try {
    const measure = new Measure(limits, (await stat(path)).size);
    if (!isZipName(fileName)) {
      const size = await measure.read(gunzip(path), signal);
      return { entries: [{ path: gzipEntryName(fileName), size }], ignored: 0 };
    }
    return await withZip(path, (zip) => listZip(zip, measure, limits, signal));
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    throw unpackFault(thrown);
  }
}

async function listZip(zip: ZipFile, measure: Measure, limits: UnpackLimits, signal: AbortSignal): Promise<Contents> {
  const { directory, ignored } = await readDirectory(zip, limits);
  const entries: PackedEntry[] = [];
  for (const [name, entry] of inTimeOrder(directory)) {
    const size =
      entryRefusal(entry) === null
        ? await measure.read(await readZipEntry(zip, entry), signal)
        : entry.raw.uncompressedSize;
    entries.push({ path: name, size });
  }
  return { entries, ignored };
}

/** Opens the bytes of one entry. Throws `RejectedError` when they cannot be unpacked. */
export async function openEntry(
  path: string,
  fileName: string,
  entryPath: string,
  directory: Directory,
): Promise<Readable> {
  if (!isZipName(fileName)) return gunzip(path);
  const entry = directory.get(entryPath);
  if (entry === undefined) throw damaged(`it no longer holds ${entryPath}`);
  const refusal = entryRefusal(entry);
  if (refusal !== null) throw unreadableEntry(refusal);
  return await withZip(path, (zip) => readZipEntry(zip, entry));
}

export async function directoryOf(path: string, fileName: string, limits: UnpackLimits): Promise<Directory> {
  if (!isZipName(fileName)) return new Map();
  return await withZip(path, async (zip) => (await readDirectory(zip, limits)).directory);
}

async function withZip<Result>(path: string, use: (zip: ZipFile) => Promise<Result>): Promise<Result> {
  const zip = await openZip(path);
  try {
    return await use(zip);
  } finally {
    zip.close(); // A stream that is open keeps the file open until it ends.
  }
}

/**
 * Times in an archive have no zone, or are in UTC: they compare with each other, and not with those of other
 * files.
 */
function inTimeOrder(directory: Directory): readonly (readonly [string, ZipEntry])[] {
  const timed = [...directory].map(([name, entry]) => ({ name, entry, atMs: modifiedMs(entry) }));
  timed.sort((a, b) => a.atMs - b.atMs);
  return timed.map(({ name, entry }) => [name, entry]);
}

async function readDirectory(zip: ZipFile, limits: UnpackLimits) {
  const directory = new Map<string, ZipEntry>();
  let ignored = 0;
  let seen = 0;
  for await (const entry of zipEntries(zip, limits.names)) {
    seen += 1;
    if (seen > limits.entriesMax) throw beyondLimit(`it holds more than ${limits.entriesMax} entries`);
    const name = safeName(entry.name);
    if (name === DOCUMENT_MARK) throw damaged("it is a document, such as a workbook, under the name of an archive");
    if (limits.ignore.some((pattern) => posix.matchesGlob(name, pattern))) ignored += 1;
    else if (directory.has(name)) throw misnamed(`it holds two entries of the name ${name}`);
    else directory.set(name, entry);
  }
  return { directory, ignored };
}

function gunzip(path: string): Readable {
  // The fault of a broken pipe reaches the reader of its end.
  return pipeline(createReadStream(path), createGunzip(), () => undefined);
}

/** Counts what comes out of a container, and stops it at its limits. */
class Measure {
  readonly #limits: UnpackLimits;
  readonly #packed: number;
  #unpacked = 0;

  constructor(limits: UnpackLimits, packed: number) {
    this.#limits = limits;
    this.#packed = packed;
  }

  /** Bytes of this entry. */
  async read(entry: Readable, signal: AbortSignal): Promise<number> {
    const before = this.#unpacked;
    for await (const chunk of entry) {
      signal.throwIfAborted();
      this.#unpacked += (chunk as Buffer).length;
      this.#assertWithin();
    }
    return this.#unpacked - before;
  }

  #assertWithin(): void {
    const { sizeMax, ratioMax } = this.#limits;
    if (this.#unpacked > sizeMax) throw beyondLimit(`it unpacks to more than ${sizeMax} bytes`);
    if (this.#unpacked > HARMLESS_BYTES && this.#unpacked > ratioMax * this.#packed)
      throw beyondLimit(
        `it unpacks to more than ${ratioMax} times its ${this.#packed} bytes, as files meant to harm do`,
      );
  }
}

// The paths and times of the entries of a ZIP container.

/**
 * Returns the name as a path within the container. Throws for a name that leads out of it, which is meant to
 * harm.
 */
function safeName(name: string): string {
  const fault = validateFileName(name);
  if (fault !== null) throw misnamed(`it holds an entry whose name leads out of it (${shownName(name)})`);
  const parts = name.split("/").filter((part) => part !== ".");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check is for control characters
  if (parts.includes("") || /[\0-\x1f\x7f]/.test(name) || name.length > NAME_CHARACTERS_MAX)
    throw misnamed(`it holds an entry whose name is no name of a file (${shownName(name)})`);
  return parts.join("/");
}

/**
 * When the entry last changed, as the archive says; a time without a zone is taken for UTC. In milliseconds
 * since 1970.
 */
function modifiedMs({ raw }: ZipEntry): number {
  return raw.getLastModDate({ timezone: "UTC" }).getTime() || 0;
}

// The errors of containers and entries that are not unpacked.

/** The bytes are not what the name says, or contradict the container's own directory. */
function damaged(why: string, cause?: unknown): RejectedError {
  return refused("HG-PACK-001", `the container cannot be unpacked: ${why}`, cause);
}

function beyondLimit(why: string): RejectedError {
  return refused("HG-PACK-002", `the container is not unpacked: ${why}`);
}

function misnamed(why: string): RejectedError {
  return refused("HG-PACK-003", `the container is not unpacked: ${why}`);
}

function unreadableEntry(why: string): RejectedError {
  return refused("HG-PACK-004", why);
}

export function changedContainer(path: string): RejectedError {
  return refused("HG-PACK-006", `the spool lost the container ${path}, and it is no longer at the drop as it was`);
}

function refused(code: RejectedError["code"], message: string, cause?: unknown): RejectedError {
  return new RejectedError(code, { operation: OPERATION, subject: "container", message, cause });
}

/**
 * Converts an error of reading a container: a fault of the disk is transient, a fault of the bytes is not.
 */
export function unpackFault(thrown: unknown): HeadgateError {
  if (thrown instanceof HeadgateError) return thrown;
  const code = systemCode(thrown);
  if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code))
    return new TransientError("HG-PACK-007", { operation: OPERATION, subject: "container", cause: thrown });
  return damaged(wordsOf(thrown), thrown);
}
