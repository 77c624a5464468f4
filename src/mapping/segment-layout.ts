/**
 * What the file of a segment holds. From its beginning the batches, one after another; a split appends more of them at its end. Which rows the
 * readings came from (the row index), and what the batches are about, lie in files beside it, or, of small files that are mapped together, behind
 * the batches in the same file, as its trailer: an empty line, the lines of the row index, those of what it is about, and a footer.
 *
 * A batch is JSON without a line feed, so whatever begins as a footer does is one, also with the children of a split behind it.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { TargetFacts } from "../model.ts";
import type { MappedFile } from "./mapping.ts";

/** End of the name of a row index that lies beside its segment. */
export const ROWS = ".rows";

/** A segment that is complete. */
export interface SegmentPart {
  readonly part: string;
  /** The full path that it is to have. */
  readonly path: string;
}

export interface RunAbout {
  /** Earliest and latest date. */
  readonly from: string;
  readonly to: string;
  readonly targets: readonly TargetFacts[];
}

/** What the batches are about; null when they hold nothing. */
export function aboutOf({ period, targets }: Pick<MappedFile, "period" | "targets">): RunAbout | null {
  if (period === null) return null;
  return { ...period, targets: targets.map(({ facts }) => facts).filter(({ points }) => points > 0) };
}

const LINES_PER_PIECE = 1_000;

/** A line for the period, and one for each target, some at a time. */
export function* aboutLines({ from, to, targets }: RunAbout): Generator<string> {
  let text = `${JSON.stringify({ from, to, count: targets.length })}\n`;
  for (const [index, facts] of targets.entries()) {
    text += `${JSON.stringify(facts)}\n`;
    if ((index + 1) % LINES_PER_PIECE !== 0) continue;
    yield text;
    text = "";
  }
  yield text;
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
}

/** Bytes of the batches, of the row index and of what it is about. A footer says where it stands itself by them. */
interface Footer {
  readonly "headgate-trailer": 1;
  readonly batches: number;
  readonly rows: number;
  readonly about: number;
}

const MARK = Buffer.from('\n{"headgate-trailer":');
const FOOTER_MAX = 160;
const LINE_FEED = 10;
/** Read at once. */
const CHUNK_BYTES = 64 * 1024;

/** Bytes of a segment with a trailer, as it is written. What is larger is no small file, and keeps its row index beside it. */
export const WHOLE_MAX = 1024 * 1024;

/** `batches`: bytes of them. Lines end with a line feed. */
export function trailerText(batches: number, rows: string, about: RunAbout): string {
  const lines = [...aboutLines(about)].join("");
  const footer: Footer = {
    "headgate-trailer": 1,
    batches,
    rows: Buffer.byteLength(rows),
    about: Buffer.byteLength(lines),
  };
  return `\n${rows}${lines}${JSON.stringify(footer)}\n`;
}

/** The trailer that the file ends with. Throws as the disk does. */
export function trailerAtEnd(path: string): Trailer | null {
  return withFile(path, (file, size) => {
    const tail = read(file, Math.max(0, size - FOOTER_MAX), Math.min(size, FOOTER_MAX));
    const at = tail.lastIndexOf(MARK);
    const found = at === -1 ? null : parsed(tail.subarray(at + 1), size - tail.length + at + 1);
    return found?.end === size ? found.trailer : null;
  });
}

/** The trailer wherever it is, looked for backwards. Behind it are the children of splits alone; one that has none may be of any size. */
export function trailerAnywhere(path: string): Trailer | null {
  return withFile(path, (file, size) => {
    for (let end = Math.min(size, WHOLE_MAX); end > 0; ) {
      const start = Math.max(0, end - CHUNK_BYTES);
      // One that begins here may end in the chunk that was looked through before.
      const chunk = read(file, start, Math.min(size, end + FOOTER_MAX) - start);
      for (
        let at = chunk.lastIndexOf(MARK);
        at !== -1;
        at = at === 0 ? -1 : chunk.lastIndexOf(MARK, at - 1)
      ) {
        const found = parsed(chunk.subarray(at + 1), start + at + 1);
        if (found !== null) return found.trailer;
      }
      end = start;
    }
    return null;
  });
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

/** The footer that these bytes begin with, which stand at the offset; null when they do not, or it says that it stands elsewhere. */
function parsed(bytes: Buffer, offset: number): { readonly trailer: Trailer; readonly end: number } | null {
  const length = bytes.indexOf(LINE_FEED);
  if (length === -1) return null;
  let footer: Footer;
  try {
    footer = JSON.parse(bytes.toString("utf8", 0, length)) as Footer;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return null;
  }
  const rows = { offset: footer.batches + 1, length: footer.rows };
  const about = { offset: rows.offset + rows.length, length: footer.about };
  if (about.offset + about.length !== offset) return null;
  return { trailer: { rows, about }, end: offset + length + 1 };
}
