/**
 * Decides which files are kept of the segment of a run at rest, for the spool (`spool.ts`) and for its threads
 * (`spool-disk-work.ts`, `kept-packer.ts`). The threads load this module, so it imports next to nothing.
 */
import { renameSync, statSync, utimesSync } from "node:fs";
import { ROWS, type Span } from "../segment/layout.ts";
import { type Trailer, trailerAnywhere, trailerAtEnd } from "../segment/trailer.ts";
import { ABOUT, KEPT_ENDS, type KeptKind, PIECE_MAX, PLAIN_MAX, type SpoolPlaces } from "./paths.ts";

/** A file that is moved as it is. */
export interface FileAsIs {
  readonly from: string;
  /** Of its name among the kept files. */
  readonly end: string;
  /** For the file that the age of its run counts by. */
  readonly mtimeMs?: number;
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
 * has its indexes beside it, so that a search need not decompress it.
 *
 * A segment without a target index is found by no search, but a replay reads its batches.
 */
export function filesToKeep(segment: string): readonly (FileAsIs | CompressibleFile)[] {
  const status = statSync(segment, { throwIfNoEntry: false });
  const hasAbout = statSync(`${segment}${ABOUT}`, { throwIfNoEntry: false }) !== undefined;
  const rows = statSync(`${segment}${ROWS}`, { throwIfNoEntry: false });
  const beside: (FileAsIs | CompressibleFile)[] = [];
  if (rows !== undefined) beside.push({ from: `${segment}${ROWS}`, kind: "rows", size: rows.size });
  if (hasAbout) beside.push({ from: `${segment}${ABOUT}`, end: ABOUT });
  if (status === undefined) return beside;
  const plain = { from: segment, end: KEPT_ENDS.segment.plain, mtimeMs: status.mtimeMs };
  // A small one is moved with all that belongs to it.
  if (status.nlink > 1 || status.size <= PLAIN_MAX) return [plain, ...beside];
  const trailer = trailerAtEnd(segment) ?? (hasAbout ? null : trailerAnywhere(segment));
  if (trailer !== null && trailer.input !== null) return [plain, ...beside];
  if (trailer === null && beside.length === 0) return [];
  // A large one too: it is compressed later (`kept-packer.ts`).
  if (status.size > PIECE_MAX) return [plain, ...beside];
  const compressed = { from: segment, kind: "segment", size: status.size } as const;
  if (trailer === null) return [compressed, ...beside];
  return [compressed, ...indexesIn(segment, trailer)];
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
export function moveToKept({ from, end, mtimeMs }: FileAsIs, kept: string, nowS: number): void {
  if (mtimeMs !== undefined) setAge(from, mtimeMs, nowS);
  renameSync(from, `${kept}${end}`);
}

/** The age of a file counts from now, unless it came a moment ago. */
export function setAge(path: string, mtimeMs: number, nowS: number): void {
  if (Math.abs(nowS - mtimeMs / 1000) > AGE_S) utimesSync(path, nowS, nowS);
}
