/**
 * Decides which files are kept of the segment of a run at rest, for the spool (`spool.ts`) and for its threads
 * (`spool-disk-work.ts`, `kept-packer.ts`). The threads load this module, so it imports next to nothing.
 */
import { renameSync, statSync, utimesSync } from "node:fs";
import type { Span } from "#mapping/segment/layout.ts";
import { type Trailer, trailerOf } from "#mapping/segment/trailer.ts";
import { KEPT_ENDS, type KeptKind, PIECE_MAX, PLAIN_MAX, type SpoolPlaces } from "./paths.ts";

/** A segment that is moved as it is. */
export interface PlainSegment {
  readonly from: string;
  readonly mtimeMs: number;
}

/** A file, or a part of one, that is compressed when that saves something: a large one later (`kept-packer.ts`). */
export interface CompressibleFile {
  readonly from: string;
  readonly kind: KeptKind;
  /** Bytes. */
  readonly size: number;
  /** A part is copied; a file is moved. */
  readonly span?: Span;
}

/**
 * The files to keep, in this order: a search begins with the last. A segment with names of several runs is never
 * compressed, since each run would have a copy; nor is a copy out of one, whose input is synced. A compressed segment
 * has its indexes beside it, so that a search need not decompress it. Of a damaged one without a trailer nothing is
 * kept, unless it is small or other runs have it.
 */
export function filesToKeep(segment: string): readonly (PlainSegment | CompressibleFile)[] {
  const status = statSync(segment, { throwIfNoEntry: false });
  if (status === undefined) return [];
  const { mtimeMs, nlink, size } = status;
  const plain = { from: segment, mtimeMs };
  if (nlink > 1 || size <= PLAIN_MAX) return [plain];
  const trailer = trailerOf(segment);
  if (trailer === null) return [];
  // A large one is compressed later (`kept-packer.ts`).
  if (trailer.input !== null || size > PIECE_MAX) return [plain];
  return [{ from: segment, kind: "segment", size }, ...indexesIn(segment, trailer)];
}

/** Whether a run that comes to rest has a file that is compressed later. */
export function isLarge(runId: string, { input, segment }: SpoolPlaces): boolean {
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return sizeOf(input(runId)) > PIECE_MAX || sizeOf(segment(runId)) > PIECE_MAX;
}

/** The parts of a segment that a compressed one has beside it. */
export function indexesIn(segment: string, { rows, about }: Pick<Trailer, "rows" | "about">): CompressibleFile[] {
  return [
    { from: segment, kind: "rows", size: rows.length, span: rows },
    { from: segment, kind: "about", size: about.length, span: about },
  ];
}

/** In seconds. A file that came less than this before is not given another age. */
const AGE_S = 60;

/**
 * `kept`: the full path there without the end. `nowS`: seconds since 1970, from which the age of kept files counts.
 */
export function moveToKept({ from, mtimeMs }: PlainSegment, kept: string, nowS: number): void {
  setAge(from, mtimeMs, nowS);
  renameSync(from, `${kept}${KEPT_ENDS.segment.plain}`);
}

/** The age of a file counts from now, unless it came a moment ago. */
export function setAge(path: string, mtimeMs: number, nowS: number): void {
  if (Math.abs(nowS - mtimeMs / 1000) > AGE_S) utimesSync(path, nowS, nowS);
}
