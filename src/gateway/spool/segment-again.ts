/** Publishes a segment that was made again, with its batches where the ledger has them. */
import { open, rm, writeFile } from "node:fs/promises";
import { publishDurably } from "#core/durable.ts";
import { systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { runOf, SHARED_MAX } from "#mapping/segment/layout.ts";
import type { BatchSlice } from "../model.ts";
import { PART } from "./paths.ts";
import { copySpan } from "./segment-changes.ts";
import { segmentFiles } from "./segment-files.ts";
import { writeTrailer } from "./trailer-copy.ts";

/** End of the name of a segment that is made again, until it is known to be the same. */
export const AGAIN = `.again${PART}`;

/** The place of a batch in the new segment, and the recorded one. */
export interface Move {
  readonly from: BatchSlice;
  readonly to: BatchSlice;
}

/**
 * Gives a segment that was made again its name, durably, with the batches at their recorded places; a crash leaves the
 * former segment or this one. Throws `TransientError` on a disk error.
 */
export async function publishAgain(again: string, path: string, moves: readonly Move[]): Promise<void> {
  const isInPlace = moves.every(({ from, to }) => from.offset === to.offset);
  const laid = isInPlace ? again : `${again}${PART}`;
  try {
    if (!isInPlace) await writeMoved(again, laid, moves);
    await publishDurably(laid, path);
  } catch (cause) {
    if (systemCode(cause) === undefined) throw cause;
    throw new TransientError("HG-SPOOL-004", {
      operation: "make segment again",
      subject: path,
      message: `the spool cannot be written: ${wordsOf(cause)}`,
      cause,
    });
  }
}

/** Removes the files of a segment that was not published. */
export async function discardAgain(again: string): Promise<void> {
  for (const path of [again, `${again}${PART}`]) await rm(path, { force: true });
}

async function writeMoved(again: string, laid: string, moves: readonly Move[]): Promise<void> {
  const { rows, about } = segmentFiles(again);
  if (rows === null || about === null) throw new Error(`${again} has no trailer`);
  await writeFile(laid, "");
  for (const { from, to } of moves) await copySpan(again, from, laid, to.offset);
  // Batches of later splits come after the bytes of the lost segment: another node may still have it, and writes them
  // there as well.
  const end = Math.max(SHARED_MAX, ...moves.map(({ to }) => to.offset + to.length));
  const file = await open(laid, "r+");
  try {
    const run = { runId: runOf(laid), input: null };
    await writeTrailer(file, end, run, { rows, about }, ({ offset }, nth) => moves[nth]?.to.offset ?? offset);
    await file.sync();
  } finally {
    await file.close();
  }
}
