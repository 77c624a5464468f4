/**
 * The places of the row index and the target index of a run: in the trailer of its segment (`segment/layout.ts`), or in
 * files beside a compressed segment and beside segments of earlier versions. The input of the run may be in the segment
 * too (`inputs.ts`).
 */
import { ROWS, type Span } from "../segment/layout.ts";
import { readSpan, type Trailer, trailerAnywhere, trailerAtEnd } from "../segment/trailer.ts";
import { isMissing, systemCode } from "../support/errors.ts";
import { keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { ABOUT, KEPT_ENDS } from "./paths.ts";

/** A file, kept or not, or a part of one that is not compressed. */
export interface FilePart {
  readonly path: string;
  readonly span?: Span;
}

/** Null for a part that is missing. */
export interface SegmentFiles {
  readonly segment: string | null;
  readonly rows: FilePart | null;
  readonly about: FilePart | null;
  /** Null too when it is stored elsewhere. */
  readonly input: FilePart | null;
}

/** By the full path of a segment. */
export function segmentFiles(path: string): SegmentFiles {
  const segment = sizeOf(path) === null ? null : path;
  const trailer = segment === null ? null : trailerOf(path);
  return trailer === null ? { segment, ...beside(path) } : { segment, ...within(path, trailer) };
}

/** By the full path of the kept files of a run without the end of their names. */
export function keptSegmentFiles(kept: string): SegmentFiles {
  const segment = keptPlace(kept, "segment");
  const about = `${kept}${ABOUT}`;
  // A compressed segment has its indexes in files beside it, whatever it had before.
  const trailer = segment?.endsWith(KEPT_ENDS.segment.plain) === true ? trailerOf(segment, about) : null;
  if (segment !== null && trailer !== null) return { segment, ...within(segment, trailer) };
  const rows = keptPlace(kept, "rows");
  return { segment, rows: rows === null ? null : { path: rows }, about: partAt(about), input: null };
}

/**
 * The trailer of a segment has precedence over files beside it. Where the segment does not end in a directory, the
 * trailer is searched only when there are none.
 */
export function trailerOf(segment: string, about = `${segment}${ABOUT}`): Trailer | null {
  try {
    return trailerAtEnd(segment) ?? (sizeOf(about) === null ? trailerAnywhere(segment) : null);
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
    return null; // Moved or removed a moment ago.
  }
}

function within(path: string, { rows, about, input }: Trailer): Omit<SegmentFiles, "segment"> {
  return {
    rows: { path, span: rows },
    about: { path, span: about },
    // One without bytes was removed (`inputs.ts`).
    input: input === null || input.length === 0 ? null : { path, span: input },
  };
}

function beside(path: string): Omit<SegmentFiles, "segment"> {
  return { rows: partAt(`${path}${ROWS}`), about: partAt(`${path}${ABOUT}`), input: null };
}

function partAt(path: string): FilePart | null {
  return sizeOf(path) === null ? null : { path };
}

/** Bytes of a part that is read at once. */
const PIECE_MAX = 64 * 1024;

/** Null when the file is no longer there: it may have been compressed, where a stream finds it. */
function pieceOf(path: string, span: Span): string | null {
  try {
    return readSpan(path, span).toString("utf8");
  } catch (thrown) {
    if (isMissing(thrown)) return null;
    throw thrown;
  }
}

/** The lines that are not empty. Rejects on a disk error. */
export async function* linesOf({ path, span }: FilePart): AsyncGenerator<string> {
  const piece = span !== undefined && span.length <= PIECE_MAX ? pieceOf(path, span) : null;
  if (piece !== null) {
    for (const line of piece.split("\n")) if (line !== "") yield line;
    return;
  }
  const input = openKept(path, span);
  // Of the ends of lines that `readline` knows, some stand within JSON, such as U+2028.
  let rest = "";
  try {
    for await (const text of input.setEncoding("utf8") as AsyncIterable<string>) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield line;
    }
  } finally {
    input.destroy();
  }
  if (rest !== "") yield rest;
}
