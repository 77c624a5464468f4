/**
 * The places of the row index and the target index of a run: in the trailer of its segment (`segment/layout.ts`), or in
 * files beside a compressed segment. The input of the run may be in the segment too (`inputs.ts`).
 */

import { isMissing } from "#core/errors.ts";
import type { Span } from "#mapping/segment/layout.ts";
import { readSpan, trailerOf } from "#mapping/segment/trailer.ts";
import { keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { KEPT_ENDS, type KeptKind } from "./paths.ts";

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
  return filesIn(path) ?? { segment: sizeOf(path) === null ? null : path, rows: null, about: null, input: null };
}

/** By the full path of the kept files of a run without the end of their names. */
export function keptSegmentFiles(kept: string): SegmentFiles {
  const segment = keptPlace(kept, "segment");
  const partOf = (kind: KeptKind) => {
    const path = keptPlace(kept, kind);
    return path === null ? null : { path };
  };
  const inside = segment?.endsWith(KEPT_ENDS.segment.plain) === true ? filesIn(segment) : null;
  return inside ?? { segment, rows: partOf("rows"), about: partOf("about"), input: null };
}

/** By the trailer of a segment that is not compressed; null when it has none, or was moved or removed a moment ago. */
function filesIn(path: string): SegmentFiles | null {
  try {
    const trailer = trailerOf(path);
    if (trailer === null) return null;
    const { rows, about, input } = trailer;
    return {
      segment: path,
      rows: { path, span: rows },
      about: { path, span: about },
      // An input without bytes was removed (`inputs.ts`).
      input: input === null || input.length === 0 ? null : { path, span: input },
    };
  } catch (thrown) {
    if (!isMissing(thrown)) throw thrown;
    return null;
  }
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
