/** Where the input of a run is: a file of its own, or its segment (`segment/layout.ts`), kept or not. */
import { constants, createWriteStream } from "node:fs";
import { copyFile, open, readdir, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { digestOfFile } from "#core/digest.ts";
import { publishDurably, syncDirectory, syncFile } from "#core/durable.ts";
import { FOOTER_MAX } from "#mapping/segment/layout.ts";
import { readSpan } from "#mapping/segment/trailer.ts";
import { keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { KEPT_ENDS, PART, type SpoolPlaces } from "./paths.ts";
import { type FilePart, keptSegmentFiles, type SegmentFiles, segmentFiles } from "./segment-files.ts";

/** Whether a run is in progress, or at rest. */
export type InputSide = "in progress" | "kept";

export class SpoolInputs {
  readonly #places: SpoolPlaces;

  constructor(places: SpoolPlaces) {
    this.#places = places;
  }

  /** Returns null when the input is no longer available. */
  find(runId: string, side?: InputSide): FilePart | null {
    const current = side === "kept" ? null : this.#inProgress(runId);
    return current ?? (side === "in progress" ? null : this.#kept(runId));
  }

  #inProgress(runId: string): FilePart | null {
    const path = this.#places.input(runId);
    return sizeOf(path) === null ? segmentFiles(this.#places.segment(runId)).input : { path };
  }

  #kept(runId: string): FilePart | null {
    const kept = this.#places.keptOf(runId);
    const path = keptPlace(kept, "input");
    return path === null ? keptSegmentFiles(kept).input : { path };
  }

  /** See `Spool.hasWholeInput`. */
  async isWhole(runId: string, sha256: string | null): Promise<boolean> {
    const path = this.#places.input(runId);
    if (sizeOf(path) === null) return false;
    if (sha256 === null || (await digestOfFile(path)) === sha256) return true;
    await rm(path, { force: true });
    return false;
  }

  /** Copies the input to another file, synced. Returns false when the input is no longer available. */
  async copy(runId: string, to: string): Promise<boolean> {
    const from = this.find(runId);
    if (from === null) return false;
    if (from.path === this.#places.input(runId)) await copyFile(from.path, to);
    else await pipeline(openKept(from.path, from.span), createWriteStream(to));
    await syncFile(to);
    return true;
  }

  /** See `Spool.restoreInput`. */
  async restore(runId: string, from: string, sha256: string | null): Promise<boolean> {
    const path = this.#places.input(runId);
    const part = `${path}${PART}`;
    if (!(await this.copy(from, part))) return false;
    const isSame = sha256 === null || (await digestOfFile(part)) === sha256;
    if (isSame) await publishDurably(part, path);
    else await rm(part);
    return isSame;
  }

  /** Ids of the runs whose inputs are kept. */
  async kept(): Promise<readonly string[]> {
    const names = await readdir(this.#places.kept);
    const idsOf = (end: string) => names.flatMap((name) => (name.endsWith(end) ? [name.slice(0, -end.length)] : []));
    const ids = new Set(Object.values(KEPT_ENDS.input).flatMap(idsOf));
    for (const id of idsOf(KEPT_ENDS.segment.plain)) if (this.#kept(id) !== null) ids.add(id);
    return [...ids];
  }

  /** Removes the input that is found, durably, and nothing else of its run. */
  async remove(runId: string, side: InputSide): Promise<void> {
    const found = this.find(runId, side);
    if (found?.span === undefined) {
      if (found === null) return;
      await rm(found.path, { force: true });
      await syncDirectory(dirname(found.path));
      return;
    }
    const { segment, keptOf } = this.#places;
    const files = side === "kept" ? keptSegmentFiles(keptOf(runId)) : segmentFiles(segment(runId));
    await removeInput(files, found);
  }
}

/**
 * Gives a run whose segment has its input a file of its own, with the same offsets and a footer by which the
 * input has no bytes. The batches stay: they may be all that is left of the file, and other runs have the
 * rest of the segment. A crash leaves either.
 */
async function removeInput({ about }: SegmentFiles, { path, span }: FilePart): Promise<void> {
  if (about?.span === undefined || span === undefined) return;
  const footerAt = about.span.offset + about.span.length;
  const [line = ""] = readSpan(path, { offset: footerAt, length: FOOTER_MAX }).toString("utf8").split("\n", 1);
  const footer = { ...(JSON.parse(line) as object), input: [span.offset, 0] };
  const part = `${path}${PART}`;
  const { atime, mtime } = await stat(path);
  try {
    // The name may be a link that a crash left: the file behind it stays as it is.
    await rm(part, { force: true });
    await copyFile(path, part, constants.COPYFILE_EXCL);
    const file = await open(part, "r+");
    try {
      // As many bytes as before, so that the bytes after it keep their offsets.
      await file.write(JSON.stringify(footer).padEnd(line.length), footerAt);
      // Retention counts from the time of the original.
      await file.utimes(atime, mtime);
      await file.sync();
    } finally {
      await file.close();
    }
    await publishDurably(part, path);
  } catch (thrown) {
    await rm(part, { force: true }); // A full disk must not be filled further.
    throw thrown;
  }
}
