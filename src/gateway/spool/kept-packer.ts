/**
 * Compresses large files that were kept as they are when their run came to rest. A process that ends meanwhile loses
 * nothing: a file has its compressed copy before it is removed, and the next process begins with it again. A thread of
 * its own does this, in pieces, and after all other work of the machine. It loads this module, so it imports next to
 * nothing.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import { dirname } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { syncNamesNow, type TaskFacts, triedOnce } from "#core/threads/disk-work.ts";
import { trailerAtEnd } from "#mapping/segment/trailer.ts";
import { type CompressibleFile, indexesIn } from "./kept-segments.ts";
import { KEPT_ENDS, type KeptKind, PACKABLE, PART, PIECE_MAX } from "./paths.ts";

/** Bytes that are compressed at once: each piece is a frame of its own. */
const FRAME_BYTES = 1024 * 1024;

/** The kept files of one run; `kept`: their full path without the end. */
export interface PackOrder {
  readonly kept: string;
}

/** Why a file could not be compressed; null when nothing is left to do. */
export interface PackAnswer {
  readonly fault: string | null;
}

/** Whether a kept file is large enough to be compressed later. */
export function isUnpacked(name: string, { size, nlink }: { readonly size: number; readonly nlink: number }): boolean {
  return size > PIECE_MAX && nlink === 1 && PACKABLE.some((kind) => name.endsWith(KEPT_ENDS[kind].plain));
}

export function performPacking({ kept }: PackOrder, facts: TaskFacts<unknown>): PackAnswer {
  yieldToOthers();
  try {
    for (const kind of PACKABLE) packOne(kept, kind, facts);
    return { fault: null };
  } catch (thrown) {
    return { fault: String(thrown) };
  }
}

/** So far that a machine without idle cores still compresses what it keeps. Only Linux has priorities of threads. */
function yieldToOthers(): void {
  if (process.platform !== "linux") return;
  // Where the system forbids it, other work waits a little.
  triedOnce(() => setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL)));
}

function packOne(kept: string, kind: KeptKind, facts: TaskFacts<unknown>): void {
  const from = `${kept}${KEPT_ENDS[kind].plain}`;
  const status = statSync(from, { throwIfNoEntry: false });
  if (status === undefined || !isUnpacked(from, status)) return;
  const parts = partsOf({ from, kind, size: status.size });
  const packed: string[] = [];
  for (const file of parts) {
    const to = `${kept}${KEPT_ENDS[file.kind].packed}`;
    if (!compress(file, `${to}${PART}`, status.mtimeMs / 1000, facts)) return;
    packed.push(to);
  }
  // It was removed meanwhile, and its copies must not take its place.
  const isGone = statSync(from, { throwIfNoEntry: false }) === undefined;
  for (const to of packed) isGone ? rmSync(`${to}${PART}`) : renameSync(`${to}${PART}`, to);
  if (isGone || packed.length === 0) return;
  syncNamesNow(dirname(kept));
  unlinkSync(from);
}

/** Nothing of a segment that has the input of its run, which has no other place, or whose end a crash tore. */
function partsOf(file: CompressibleFile): readonly CompressibleFile[] {
  if (file.kind !== "segment") return [file];
  const trailer = trailerAtEnd(file.from);
  return trailer?.input === null ? [file, ...indexesIn(file.from, trailer)] : [];
}

/** Compresses what has to be, into a synced file. False when it was given up. */
function compress(
  { from, kind, size, span }: CompressibleFile,
  to: string,
  ageS: number,
  facts: TaskFacts<unknown>,
): boolean {
  const isPlain = KEPT_ENDS[kind].packed === KEPT_ENDS[kind].plain;
  const piece = Buffer.allocUnsafeSlow(Math.min(FRAME_BYTES, size));
  const source = openSync(from, "r");
  try {
    const target = openSync(to, "w");
    try {
      for (let at = 0; at < size && facts.isWanted(); ) {
        const read = readSync(source, piece, 0, Math.min(piece.length, size - at), (span?.offset ?? 0) + at);
        if (read === 0) throw new Error(`${from} is shorter than it was`);
        const bytes = piece.subarray(0, read);
        writeFileSync(target, isPlain ? bytes : zstdCompressSync(bytes));
        at += read;
      }
      if (facts.isWanted()) fsyncSync(target);
    } finally {
      closeSync(target);
    }
    // Retention counts from the time of the original.
    utimesSync(to, ageS, ageS);
  } catch (thrown) {
    rmSync(to, { force: true });
    throw thrown;
  } finally {
    closeSync(source);
  }
  if (facts.isWanted()) return true;
  rmSync(to, { force: true });
  return false;
}
