/** The parts of a workbook, which is a ZIP archive; they can be read in any order, without temporary files. */
import { entryRefusal, openZip, readZipEntry, type ZipEntry, type ZipFile, zipEntries } from "#core/zip.ts";
import type { Input } from "./decode.ts";
import { fileHead } from "./file-head.ts";
import { DIRECTORY_BYTES_MAX, UNPACK_RATIO_MAX, UNPACKED_FREE_BYTES } from "./limits.ts";
import { knownFormat, PAGE_BYTES, refusePage } from "./magic.ts";
import { isUnreadable, UnreadableError } from "./row-error.ts";

/** Length of an entry in the directory, without its name. */
const CENTRAL_BYTES = 46;

export class WorkbookArchive {
  readonly #zip: ZipFile;
  readonly #entries: ReadonlyMap<string, ZipEntry>;

  private constructor(zip: ZipFile, entries: ReadonlyMap<string, ZipEntry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  /** Throws an `UnreadableError` for a file that is not an archive. */
  static async open({ path, small }: Pick<Input, "path" | "small">): Promise<WorkbookArchive> {
    const zip = await openZip(small ?? path).catch(async (fault: Error) => {
      throw openFault(small ?? (await fileHead(path, PAGE_BYTES)), fault);
    });
    try {
      return new WorkbookArchive(zip, await readDirectory(zip));
    } catch (thrown) {
      zip.close();
      throw isUnreadable(thrown) ? thrown : damaged(messageOf(thrown), thrown);
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /**
   * Text of an entry in UTF-8, in chunks that end between characters; empty when there is no such entry.
   * Refuses a damaged entry, and one that unpacks to more than `bytesMax` or to far more than its packed
   * size.
   */
  async *text(name: string, bytesMax: number): AsyncGenerator<string> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const refusal = entryRefusal(entry);
    if (refusal !== null) throw damaged(`the entry ${name}: ${refusal}`);
    const decoder = new TextDecoder("utf-8", { fatal: true });
    for await (const chunk of this.#chunks(entry, bytesMax)) {
      const text = decode(decoder, name, chunk);
      if (text !== "") yield text;
    }
    const rest = decode(decoder, name);
    if (rest !== "") yield rest;
  }

  close(): void {
    this.#zip.close();
  }

  async *#chunks(entry: ZipEntry, bytesMax: number): AsyncGenerator<Buffer> {
    let unpacked = 0;
    try {
      for await (const chunk of (await readZipEntry(this.#zip, entry)) as AsyncIterable<Buffer>) {
        unpacked += chunk.length;
        limitUnpacked(entry, unpacked, bytesMax);
        yield chunk;
      }
    } catch (thrown) {
      if (isUnreadable(thrown)) throw thrown;
      throw damaged(`the entry ${entry.name}: ${messageOf(thrown)}`, thrown);
    }
  }
}

function decode(decoder: TextDecoder, name: string, chunk?: Buffer): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    throw damaged(`the entry ${name} is not UTF-8`);
  }
}

function limitUnpacked({ name, raw }: ZipEntry, unpacked: number, bytesMax: number): void {
  if (unpacked > bytesMax) throw damaged(`the entry ${name} unpacks to more than ${bytesMax} bytes`);
  if (unpacked > UNPACKED_FREE_BYTES && unpacked > raw.compressedSize * UNPACK_RATIO_MAX)
    throw damaged(`the entry ${name} unpacks to more than ${UNPACK_RATIO_MAX} times its size, which no sheet does`);
}

async function readDirectory(zip: ZipFile): Promise<Map<string, ZipEntry>> {
  const entries = new Map<string, ZipEntry>();
  let bytes = 0;
  for await (const entry of zipEntries(zip, "utf-8")) {
    const { fileNameLength, extraFieldLength, fileCommentLength } = entry.raw;
    bytes += CENTRAL_BYTES + fileNameLength + extraFieldLength + fileCommentLength;
    if (bytes > DIRECTORY_BYTES_MAX) throw damaged(`its directory is larger than ${DIRECTORY_BYTES_MAX} bytes`);
    // Some programs begin names with a slash.
    entries.set(entry.name.replace(/^\//, ""), entry);
  }
  return entries;
}

/** Names the format of a file that is not a workbook; throws where it is a page. */
function openFault(first: Buffer, fault: Error): UnreadableError {
  if (first.length === 0) return damaged("it is empty", fault);
  if (first[0] === 0x50 && first[1] === 0x4b)
    return damaged(/signature not found/.test(fault.message) ? "its end is missing" : fault.message, fault);
  refusePage(first);
  const { what = "not an archive, or its end is missing" } = knownFormat(first) ?? {};
  return damaged(`it is ${what}`, fault);
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function damaged(why: string, cause?: unknown): UnreadableError {
  return new UnreadableError(`the file cannot be read as a workbook (.xlsx): ${why}`, {
    hint: "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.",
    cause,
  });
}
