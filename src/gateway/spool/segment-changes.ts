/**
 * Changes the segment of one run: batches of a split are appended, and written again to a segment that was lost. A run
 * whose segment has other runs gets a copy of its own part first, in which everything has the same offsets.
 */
import { createWriteStream, statSync } from "node:fs";
import { copyFile, open, rm, writeFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { publishDurably, syncFile } from "#core/durable.ts";
import { endText, runOf, type Span } from "#mapping/segment/layout.ts";
import { type Trailer, trailerOf } from "#mapping/segment/trailer.ts";
import { openKept } from "./kept-files.ts";
import { PART } from "./paths.ts";
import { isWhole, rowsOf } from "./row-index.ts";
import type { FilePart } from "./segment-files.ts";
import { writeAt, writeTrailer } from "./trailer-copy.ts";

/**
 * Appends bytes to the segment, durably. Returns the offset of the first. Bytes that a crash leaves without a record
 * are never read. Rejects on a disk error.
 */
async function append(path: string, bytes: Buffer): Promise<number> {
  const trailer = await isolate(path);
  const file = await open(path, "r+");
  try {
    const { size } = await file.stat();
    await writeAt(file, Buffer.concat([bytes, endOf(path, trailer)]), size);
    await file.sync();
    return size;
  } finally {
    await file.close();
  }
}

/**
 * Writes bytes to the segment at an offset, durably. Another node may have appended them where this segment has its
 * trailer, which is moved to the end before. Rejects on a disk error.
 */
async function restore(path: string, offset: number, bytes: Buffer): Promise<void> {
  const trailer = await isolate(path);
  const end = offset + bytes.length;
  const file = await open(path, "r+");
  try {
    const { size } = await file.stat();
    if (trailer === null || end < trailer.rows.offset) await writeAt(file, bytes, offset);
    else if (offset >= endOfSpan(trailer.footer)) {
      await writeAt(file, bytes, offset);
      await writeAt(file, endOf(path, trailer), Math.max(size, end));
    } else {
      const { rows, about, input } = trailer;
      const parts = { rows: { path, span: rows }, about: { path, span: about } };
      await writeTrailer(file, Math.max(size, end), { runId: runOf(path), input }, parts);
      await file.sync();
      await writeAt(file, bytes, offset);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** As delivery calls them. */
export const segmentChanges = { append, restore };

/** Nothing for a damaged segment, in which the trailer is not found. */
function endOf(path: string, trailer: Trailer | null): Buffer {
  return Buffer.from(trailer === null ? "" : endText(new Map([[runOf(path), trailer.footer.offset]])));
}

/**
 * Gives a run a file of its own, when others share it, with the offsets unchanged and holes where other runs are. A
 * crash leaves the shared file or the copy. Other runs and their bytes are not changed. Returns the trailer of the run.
 */
async function isolate(path: string): Promise<Trailer | null> {
  const { nlink } = statSync(path);
  const trailer = trailerOf(path);
  // A segment of several runs is copied also when its last name is left, so that offsets do not depend on other runs.
  if (nlink === 1 && trailer?.isShared !== true) return trailer;
  const part = `${path}${PART}`;
  try {
    // The name may be a link that a crash left: the file behind it stays as it is.
    await rm(part, { force: true });
    if (trailer === null || !trailer.isShared) await copyFile(path, part);
    else await copyRun(path, part, trailer);
    await syncFile(part);
    await publishDurably(part, path);
    return trailer;
  } catch (thrown) {
    await rm(part, { force: true }); // A full disk must not be filled further.
    throw thrown;
  }
}

async function copyRun(from: string, to: string, trailer: Trailer): Promise<void> {
  await writeFile(to, "", { flag: "wx" });
  for (const span of await spansOf(from, trailer)) await copySpan(from, span, to, span.offset);
  await writeFile(to, endOf(from, trailer), { flag: "a" });
}

/**
 * The input, and the bytes from the first batch to the end of the trailer; all bytes before that end when the row index
 * is damaged, so that the first batch is not known.
 */
async function spansOf(path: string, { rows, input, footer }: Trailer): Promise<readonly Span[]> {
  const offset = await firstOffset({ path, span: rows });
  const own = { offset, length: endOfSpan(footer) - offset };
  return input === null ? [own] : [input, own];
}

async function firstOffset(rows: FilePart): Promise<number> {
  if (await isWhole(rows)) for await (const { offset } of rowsOf(rows)) return offset;
  return 0;
}

export async function copySpan(from: string, span: Span, to: string, offset: number): Promise<void> {
  await pipeline(openKept(from, span), createWriteStream(to, { flags: "r+", start: offset }));
}

function endOfSpan({ offset, length }: Span): number {
  return offset + length;
}
