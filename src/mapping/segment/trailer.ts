/** Finds the trailer of a run in a segment (`layout.ts`). */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { END_MARK, FOOTER_MARK, FOOTER_MAX, type Footer, runOf, type SegmentEnd, type Span } from "./layout.ts";

export interface Trailer {
  readonly rows: Span;
  readonly about: Span;
  /** The file that was mapped; null where it is stored elsewhere. */
  readonly input: Span | null;
  /** Its last line, with the line feed. */
  readonly footer: Span;
  /** Whether the segment has other runs. */
  readonly isShared: boolean;
}

const LINE_FEED = 10;
/** Bytes that are read at once. */
const CHUNK_BYTES = 64 * 1024;
/** Bytes at the end of a segment that are searched: more than the children of any split that a crash interrupted. */
const SEARCHED_MAX = 64 * 1024 * 1024;

/** The trailer of the run that the name begins with; null when the segment has none. Throws disk errors. */
export function trailerOf(path: string): Trailer | null {
  return trailerAtEnd(path) ?? trailerAnywhere(path);
}

/** By the directory at the end of the segment. */
export function trailerAtEnd(path: string): Trailer | null {
  return withFile(path, (file, size) => {
    const tail = read(file, Math.max(0, size - FOOTER_MAX), Math.min(size, FOOTER_MAX));
    const tailAt = size - tail.length;
    const endAt = tail.lastIndexOf(END_MARK);
    if (endAt === -1 || tail.indexOf(LINE_FEED, endAt + 1) < tail.length - 1) return null;
    return byDirectory(file, tail.subarray(endAt + 1), tailAt + endAt + 1, runOf(path));
  });
}

/** The directory ends where the last line begins. */
function byDirectory(file: number, lastLine: Buffer, lastAt: number, run: string): Trailer | null {
  const end = line<Pick<SegmentEnd, "directory">>(lastLine);
  if (end === null || !(end.directory <= lastAt)) return null;
  const footers = line<Readonly<Record<string, number>>>(read(file, lastAt - end.directory, end.directory));
  const at = footers?.[run];
  const found = at === undefined ? null : parsed(read(file, at, FOOTER_MAX), at, run);
  return found === null ? null : { ...found, isShared: Object.keys(footers ?? {}).length > 1 };
}

/** Searched from the end of the segment: a crash in the middle of a split leaves no directory at the end. */
export function trailerAnywhere(path: string): Trailer | null {
  return withFile(path, (file, size) => {
    for (let end = size; end > Math.max(0, size - SEARCHED_MAX); ) {
      const start = Math.max(0, end - CHUNK_BYTES);
      // A footer that begins here may end in the chunk that was searched before.
      const chunk = read(file, start, Math.min(size, end + FOOTER_MAX) - start);
      for (
        let at = chunk.lastIndexOf(FOOTER_MARK);
        at !== -1;
        at = at === 0 ? -1 : chunk.lastIndexOf(FOOTER_MARK, at - 1)
      ) {
        const found = parsed(chunk.subarray(at + 1), start + at + 1, runOf(path));
        if (found !== null) return found;
      }
      end = start;
    }
    return null;
  });
}

/** Synchronous: the event loop would cost more than so few bytes. Throws disk errors. */
export function readSpan(path: string, { offset, length }: Span): Buffer {
  return withFile(path, (file) => read(file, offset, length));
}

function withFile<Value>(path: string, work: (file: number, size: number) => Value): Value {
  const file = openSync(path, "r");
  try {
    return work(file, fstatSync(file).size);
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

/**
 * The footer of the run that these bytes begin with, which stand at the offset; null when they do not, or when the
 * footer says that it stands elsewhere.
 */
function parsed(bytes: Buffer, offset: number, run: string): Trailer | null {
  const footer = line<Footer>(bytes);
  if (footer?.run !== run) return null;
  const rows = { offset: footer.batches + 1, length: footer.rows };
  const about = { offset: rows.offset + rows.length, length: footer.about };
  if (about.offset + about.length !== offset) return null;
  const [at, length] = footer.input ?? [];
  const input = at === undefined || length === undefined ? null : { offset: at, length };
  return { rows, about, input, footer: { offset, length: bytes.indexOf(LINE_FEED) + 1 }, isShared: false };
}

/** The JSON of the line that the bytes begin with; null when the line has no end, or is no JSON. */
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
