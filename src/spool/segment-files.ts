/**
 * Where the row index of a segment lies, and what its batches are about: in files beside it, or in its trailer (`segment/layout.ts`). Whoever reads
 * them asks here. The input of its run may lie in it too (`inputs.ts`).
 */
import { ROWS, readSpan, type Span, type Trailer, trailerAnywhere, trailerAtEnd } from "../segment/layout.ts";
import { systemCode } from "../support/errors.ts";
import { keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { ABOUT, KEPT_ENDS } from "./paths.ts";

/** A file, kept or not, or a part of one that is not compressed. */
export interface FilePart {
  readonly path: string;
  readonly span?: Span;
}

/** Null for what is not here. */
export interface SegmentFiles {
  readonly segment: string | null;
  readonly rows: FilePart | null;
  readonly about: FilePart | null;
  /** Null too for one that lies elsewhere. */
  readonly input: FilePart | null;
}

/** Of a segment by its full path. */
export function segmentFiles(path: string): SegmentFiles {
  const segment = sizeOf(path) === null ? null : path;
  const trailer = segment === null ? null : trailerOf(path, `${path}${ABOUT}`);
  return trailer === null ? { segment, ...beside(path) } : { segment, ...within(path, trailer) };
}

/** Of what is kept of a run; the full path without the end of the name. */
export function keptSegmentFiles(kept: string): SegmentFiles {
  const segment = keptPlace(kept, "segment");
  const about = `${kept}${ABOUT}`;
  // What is compressed has its row index and what it is about in files beside it, whatever it had before.
  const trailer = segment?.endsWith(KEPT_ENDS.segment.plain) === true ? trailerOf(segment, about) : null;
  if (segment !== null && trailer !== null) return { segment, ...within(segment, trailer) };
  const rows = keptPlace(kept, "rows");
  return { segment, rows: rows === null ? null : { path: rows }, about: partAt(about), input: null };
}

/** A trailer belongs to its segment whatever lies beside it; behind the children of splits it is only looked for when nothing does. */
function trailerOf(segment: string, about: string): Trailer | null {
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
    // Without bytes it was taken out (`inputs.ts`): a file that holds nothing gives no batches.
    input: input === null || input.length === 0 ? null : { path, span: input },
  };
}

function beside(path: string): Omit<SegmentFiles, "segment"> {
  return { rows: partAt(`${path}${ROWS}`), about: partAt(`${path}${ABOUT}`), input: null };
}

function partAt(path: string): FilePart | null {
  return sizeOf(path) === null ? null : { path };
}

/** Bytes that are read at once. */
const PIECE_MAX = 64 * 1024;

/** Rejects as the disk does. */
export async function* linesOf({ path, span }: FilePart): AsyncGenerator<string> {
  if (span !== undefined && span.length <= PIECE_MAX) {
    for (const line of readSpan(path, span).toString("utf8").split("\n")) if (line !== "") yield line;
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

/** Offset of the first batch of a run with this row index. Those of a run that shares its file with others end where its trailer begins, with an empty line. */
export async function beginningOf(rows: FilePart): Promise<number> {
  if (rows.span === undefined) return 0;
  let offset = rows.span.offset - 1;
  for await (const line of linesOf(rows)) offset -= (JSON.parse(line) as { readonly length: number }).length;
  return offset;
}
