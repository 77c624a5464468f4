/**
 * What the file of a segment holds. From its beginning the batches, one after another; a split appends more of them at its end. Which rows the
 * readings came from (the row index), and what the batches are about, lie in files beside it.
 *
 * Small files that are mapped together share one file instead, a **pack**, which has a name for each of their runs (hard links): their inputs as they were
 * fetched, then for each run its batches and its trailer (an empty line, the lines of the row index, those of what it is about, and a footer), and
 * last a directory that tells where each run has its footer.
 *
 * A batch is JSON without a line feed, so whatever begins as a footer does is one, also with the children of a split behind it.
 */
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import type { TargetFacts } from "../model.ts";

/** End of the name of a row index that lies beside its segment. */
export const ROWS = ".rows";

/** End of the name of what the batches of a segment without a trailer are about, which lies beside it. */
export const ABOUT = ".about";

/** A pack that is complete, but for being synced and having its names. */
export interface PackPart {
  readonly part: string;
  /** The full paths that it is to have, one for each of its runs. */
  readonly paths: readonly string[];
}

export interface RunAbout {
  /** Earliest and latest date. */
  readonly from: string;
  readonly to: string;
  readonly targets: readonly TargetFacts[];
}

/** What all batches of a run hold, as far as the index of its targets tells. */
export interface MappedContents {
  /** Earliest and latest date; null when there are no readings. */
  readonly period: { readonly from: string; readonly to: string } | null;
  readonly targets: readonly { readonly facts: TargetFacts }[];
}

/** What the batches are about; null when they hold nothing. */
export function aboutOf({ period, targets }: MappedContents): RunAbout | null {
  if (period === null) return null;
  return { ...period, targets: targets.map(({ facts }) => facts).filter(({ points }) => points > 0) };
}

const LINES_PER_PIECE = 1_000;

/** A line for the period, one for each target, and last the SHA-256 of the lines before; some lines at a time. */
export function* aboutLines({ from, to, targets }: RunAbout): Generator<string> {
  const digest = createHash("sha256");
  let text = `${JSON.stringify({ from, to, count: targets.length, sealed: true })}\n`;
  for (const [index, facts] of targets.entries()) {
    text += `${JSON.stringify(facts)}\n`;
    if ((index + 1) % LINES_PER_PIECE !== 0) continue;
    digest.update(text);
    yield text;
    text = "";
  }
  digest.update(text);
  yield `${text}${JSON.stringify({ sha256: digest.digest("hex") })}\n`;
}

/** Bytes of a part of a file. */
export interface Span {
  /** Of its first byte. */
  readonly offset: number;
  readonly length: number;
}

export interface Trailer {
  readonly rows: Span;
  readonly about: Span;
  /** The file that was mapped; null where it lies elsewhere. */
  readonly input: Span | null;
  /** Its last line, with the end. */
  readonly footer: Span;
}

/** Where the batches of a run end, and bytes of its row index and of what it is about, which follow. A footer says where it stands itself by them. */
interface Footer {
  readonly "headgate-trailer": 1;
  readonly batches: number;
  readonly rows: number;
  readonly about: number;
  /** Of a run that shares its file with others: its id, and offset and bytes of its input. */
  readonly run?: string;
  readonly input?: readonly [offset: number, length: number];
}

/** The last line of a pack: bytes of the line before, which has the offsets of the footers by the ids of the runs. */
interface PackEnd {
  readonly "headgate-pack": 1;
  readonly directory: number;
}

const MARK = Buffer.from('\n{"headgate-trailer":');
const PACK_MARK = Buffer.from('\n{"headgate-pack":');
const FOOTER_MAX = 256;
const LINE_FEED = 10;
/** Read at once. */
const CHUNK_BYTES = 64 * 1024;

/** Bytes of a pack, as it is written. What does not fit into one is no small file, and has a segment of its own. */
export const PACK_MAX = 2 * 1024 * 1024;

/** Of a run in a pack. */
export interface PackedRun {
  readonly runId: string;
  readonly input: Span;
}

/** What follows batches that end at this offset, and where in the file its last line is, the footer. The lines of the row index have their ends. */
export function trailerText(
  batches: number,
  rows: string,
  about: RunAbout,
  of?: PackedRun,
): { readonly text: string; readonly footerAt: number } {
  const lines = [...aboutLines(about)].join("");
  const [rowBytes, aboutBytes] = [Buffer.byteLength(rows), Buffer.byteLength(lines)];
  const footer: Footer = {
    "headgate-trailer": 1,
    batches,
    rows: rowBytes,
    about: aboutBytes,
    ...(of === undefined ? {} : { run: of.runId, input: [of.input.offset, of.input.length] }),
  };
  return {
    text: `\n${rows}${lines}${JSON.stringify(footer)}\n`,
    footerAt: batches + 1 + rowBytes + aboutBytes,
  };
}

/** What a pack ends with; the offsets of the footers by the ids of the runs. */
export function packEndText(footers: ReadonlyMap<string, number>): string {
  const directory = `${JSON.stringify(Object.fromEntries(footers))}\n`;
  const end: PackEnd = { "headgate-pack": 1, directory: Buffer.byteLength(directory) };
  return `${directory}${JSON.stringify(end)}\n`;
}

/** The trailer of the run that the name begins with, in a file that ends with one, or as a pack does. Throws as the disk does. */
export function trailerAtEnd(path: string): Trailer | null {
  return withFile(path, (file, size) => {
    const tail = read(file, Math.max(0, size - FOOTER_MAX), Math.min(size, FOOTER_MAX));
    const [at, packAt] = [tail.lastIndexOf(MARK), tail.lastIndexOf(PACK_MARK)];
    const tailAt = size - tail.length;
    if (packAt !== -1 && tail.indexOf(LINE_FEED, packAt + 1) === tail.length - 1)
      return trailerInPack(file, tail.subarray(packAt + 1), tailAt + packAt + 1, runOf(path));
    const found = at === -1 ? null : parsed(tail.subarray(at + 1), tailAt + at + 1, runOf(path));
    return found !== null && found.footer.offset + found.footer.length === size ? found : null;
  });
}

/** By its directory, which ends where the last line begins. */
function trailerInPack(file: number, lastLine: Buffer, lastAt: number, run: string): Trailer | null {
  const end = line<PackEnd>(lastLine);
  if (end === null || !(end.directory <= lastAt)) return null;
  const footers = line<Readonly<Record<string, number>>>(read(file, lastAt - end.directory, end.directory));
  const at = footers?.[run];
  return at === undefined ? null : parsed(read(file, at, FOOTER_MAX), at, run);
}

/** The trailer of the run that the name begins with wherever it is, looked for backwards; behind it are other runs of a pack, and the children of splits. */
export function trailerAnywhere(path: string): Trailer | null {
  return withFile(path, (file, size) => {
    for (let end = Math.min(size, PACK_MAX); end > 0; ) {
      const start = Math.max(0, end - CHUNK_BYTES);
      // One that begins here may end in the chunk that was looked through before.
      const chunk = read(file, start, Math.min(size, end + FOOTER_MAX) - start);
      for (
        let at = chunk.lastIndexOf(MARK);
        at !== -1;
        at = at === 0 ? -1 : chunk.lastIndexOf(MARK, at - 1)
      ) {
        const found = parsed(chunk.subarray(at + 1), start + at + 1, runOf(path));
        if (found !== null) return found;
      }
      end = start;
    }
    return null;
  });
}

/** The files of a run have names that begin with its id. */
function runOf(path: string): string {
  return basename(path).split(".", 1)[0] ?? "";
}

/** At once: a detour over the event loop would cost more than so few bytes. Throws as the disk does. */
export function readSpan(path: string, { offset, length }: Span): Buffer {
  return withFile(path, (file) => read(file, offset, length));
}

function withFile<Value>(path: string, look: (file: number, size: number) => Value): Value {
  const file = openSync(path, "r");
  try {
    return look(file, fstatSync(file).size);
  } finally {
    closeSync(file);
  }
}

function read(file: number, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let count = 0;
  for (let more = true; more && count < length; ) {
    const got = readSync(file, bytes, count, length - count, offset + count);
    count += got;
    more = got > 0;
  }
  return bytes.subarray(0, count);
}

/** The footer of the run that these bytes begin with, which stand at the offset; null when they do not, or it says that it stands elsewhere. */
function parsed(bytes: Buffer, offset: number, of: string): Trailer | null {
  const footer = line<Footer>(bytes);
  if (footer === null || (footer.run !== undefined && footer.run !== of)) return null;
  const rows = { offset: footer.batches + 1, length: footer.rows };
  const about = { offset: rows.offset + rows.length, length: footer.about };
  if (about.offset + about.length !== offset) return null;
  const [at, length] = footer.input ?? [];
  const input = at === undefined || length === undefined ? null : { offset: at, length };
  return { rows, about, input, footer: { offset, length: bytes.indexOf(LINE_FEED) + 1 } };
}

/** The JSON of the line that the bytes begin with; null when it has no end, or is none. */
function line<Value extends object>(bytes: Buffer): Value | null {
  const length = bytes.indexOf(LINE_FEED);
  if (length === -1) return null;
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8", 0, length));
    return typeof value === "object" ? (value as Value | null) : null;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return null;
  }
}
