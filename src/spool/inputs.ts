/**
 * Where the input of a run is: in a file of its own, kept or not, or in the pack that its segment is (`segment/layout.ts`), kept or not. Whoever
 * wants its bytes asks here.
 */
import { constants, createWriteStream } from "node:fs";
import { copyFile, open, readdir, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { readSpan } from "../segment/layout.ts";
import { digestOfFile } from "../support/digest.ts";
import { publishDurably, syncDirectory, syncFile } from "../support/durable.ts";
import { keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { KEPT_ENDS, PART, type SpoolPlaces } from "./paths.ts";
import { type FilePart, keptSegmentFiles, type SegmentFiles, segmentFiles } from "./segment-files.ts";

/** Whether a run is on its way, or at rest. */
export type InputSide = "under way" | "kept";

/** Bytes in which the footer of a trailer lies. */
const FOOTER_MAX = 256;

export class SpoolInputs {
  readonly #places: SpoolPlaces;

  constructor(places: SpoolPlaces) {
    this.#places = places;
  }

  /** Null when it is not here any more. */
  find(runId: string, side?: InputSide): FilePart | null {
    const underWay = side === "kept" ? null : this.#underWay(runId);
    return underWay ?? (side === "under way" ? null : this.#kept(runId));
  }

  #underWay(runId: string): FilePart | null {
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

  /** Into another file, synced. False when it is not here any more. */
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
    const isMeant = sha256 === null || (await digestOfFile(part)) === sha256;
    if (isMeant) await publishDurably(part, path);
    else await rm(part);
    return isMeant;
  }

  /** Ids of the runs of which it is kept. */
  async kept(): Promise<readonly string[]> {
    const names = await readdir(this.#places.kept);
    const idsOf = (end: string) =>
      names.flatMap((name) => (name.endsWith(end) ? [name.slice(0, -end.length)] : []));
    const ids = new Set(Object.values(KEPT_ENDS.input).flatMap(idsOf));
    for (const id of idsOf(KEPT_ENDS.segment.plain)) if (this.#kept(id) !== null) ids.add(id);
    return [...ids];
  }

  /** Removes the one that is found, for good, and nothing else of its run. */
  async remove(runId: string, side: InputSide): Promise<void> {
    const found = this.find(runId, side);
    if (found?.span === undefined) {
      if (found === null) return;
      await rm(found.path, { force: true });
      await syncDirectory(dirname(found.path));
      return;
    }
    const { segment, keptOf } = this.#places;
    const of = side === "kept" ? keptSegmentFiles(keptOf(runId)) : segmentFiles(segment(runId));
    await takeOut(of, found);
  }
}

/**
 * Gives a run that is in a pack a file of its own, in which everything lies where it did, but which says that no bytes are its input. Its batches may be all that
 * is left of what was fetched, and other runs have the rest of the pack. A crash leaves either.
 */
async function takeOut({ about }: SegmentFiles, { path, span }: FilePart): Promise<void> {
  if (about?.span === undefined || span === undefined) return;
  const footerAt = about.span.offset + about.span.length;
  const [line = ""] = readSpan(path, { offset: footerAt, length: FOOTER_MAX })
    .toString("utf8")
    .split("\n", 1);
  const footer = { ...(JSON.parse(line) as object), input: [span.offset, 0] };
  const part = `${path}${PART}`;
  const { atime, mtime } = await stat(path);
  try {
    // What the name may be a link to, left by a crash, stays as it is.
    await rm(part, { force: true });
    await copyFile(path, part, constants.COPYFILE_EXCL);
    const file = await open(part, "r+");
    try {
      // As many bytes as before: what follows stays where it is.
      await file.write(JSON.stringify(footer).padEnd(line.length), footerAt);
      // It is no younger than it was.
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
