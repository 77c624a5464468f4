/**
 * What is to be kept of the segment of a run that comes to rest, with its row index and what it is about: decided here, by the spool (`spool.ts`)
 * and by its thread (`spool-disk-work.ts`). The spool's thread loads it too, so it imports next to nothing.
 */
import { renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { ROWS, readSpan, type Trailer, trailerAnywhere, trailerAtEnd } from "../segment/layout.ts";
import { ABOUT, KEPT_ENDS, type KeptKind, PART, PLAIN_MAX } from "./paths.ts";

/** A file that is moved as it is. */
export interface FileAsIs {
  readonly from: string;
  /** Of its name among what is kept. */
  readonly end: string;
  /** Where it is what the age of its run counts by. */
  readonly mtimeMs?: number;
}

/** A file that is compressed when that saves something. */
export interface CompressibleFile {
  readonly from: string;
  readonly kind: KeptKind;
  /** Bytes. */
  readonly size: number;
}

/**
 * The files that are to be kept, in this order: a search begins with the last. A file that several runs share, a pack, is never compressed, since each of them
 * would have a copy; nor is one that was, whose input is synced and whose batches begin anywhere. A trailer goes with its segment, and is copied out of one that is to be
 * compressed, so that a search need not unpack it.
 *
 * A segment of which it was never told what it is about is found by no search, but a replay asks for what was sent of it.
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
  // No look is needed at a small one, which has its trailer in it, or what belongs to it beside it.
  if (status.nlink > 1 || status.size <= PLAIN_MAX) return [plain, ...beside];
  // Behind the children of splits it is only looked for when nothing lies beside.
  const trailer = trailerAtEnd(segment) ?? (hasAbout ? null : trailerAnywhere(segment));
  if (trailer !== null && trailer.input !== null) return [plain, ...beside];
  const packed = { from: segment, kind: "segment", size: status.size } as const;
  if (beside.length > 0) return [packed, ...beside];
  // Nobody knows what it is.
  return trailer === null ? [] : [packed, ...copiedOut(segment, trailer)];
}

function copiedOut(segment: string, { rows, about }: Trailer): readonly [CompressibleFile, FileAsIs] {
  const [rowsPart, aboutPart] = [`${segment}${ROWS}${PART}`, `${segment}${ABOUT}${PART}`];
  writeFileSync(rowsPart, readSpan(segment, rows));
  writeFileSync(aboutPart, readSpan(segment, about));
  return [
    { from: rowsPart, kind: "rows", size: rows.length },
    { from: aboutPart, end: ABOUT },
  ];
}

/** Of something that is a moment old anyway, in seconds. */
const AGE_S = 60;

/** `kept`: the full path there without the end. `nowS`: seconds since 1970, from which the age of what is kept counts. */
export function moveToKept({ from, end, mtimeMs }: FileAsIs, kept: string, nowS: number): void {
  if (mtimeMs !== undefined) setAge(from, mtimeMs, nowS);
  renameSync(from, `${kept}${end}`);
}

/** The age of a file counts from here; that of one which came a moment ago does so already, but for that moment. */
export function setAge(path: string, mtimeMs: number, nowS: number): void {
  if (Math.abs(nowS - mtimeMs / 1000) > AGE_S) utimesSync(path, nowS, nowS);
}
